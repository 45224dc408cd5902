"""How far a run can be trusted: errors of its steps, balances of energy and momenta, and advice."""
