"""Quantities at one state or a batch of states, compiled once per mechanism; and checks of the arrays that callers pass."""
