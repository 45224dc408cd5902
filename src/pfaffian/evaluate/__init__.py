"""Questions of one state or of a batch of states: compiled once, answered as arrays; and what callers give, checked."""
