"""OSIM, the files of OpenSim.

osim.py            reading OSIM files as mechanisms
osim_coordinate.py coordinates that others determine
osim_frame.py      frames of an OSIM file: bodies, and frames that are fixed to them
osim_function.py   functions of coordinates: lines, polynomials, splines
osim_joint.py      joints of an OSIM file as chains of turns and slides
osim_known.py      elements that are read or cannot change the motion, and <defaults>
osim_part.py       bodies, joints and coordinates of an OSIM file, as plain data
"""
