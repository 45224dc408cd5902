"""Ready-made parts of machines: springs, friction, contacts, wheels, drives, tyres, multicopters."""
