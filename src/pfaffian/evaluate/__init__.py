"""Quantities at one state or a batch of states, as arrays: compiled once per mechanism; and checks of what callers pass in."""
