"""How far a run can be trusted: errors of its steps, balances of energy and momenta, and advice.

accuracy.py               the error of the steps, by comparison of some of them with two half steps
advice.py                 which part is too fast for the steps, and which step would be short enough
balance.py                errors that the steps add to energy and momenta
between_comparisons.py    the error of the steps between the comparisons of a run, estimated from the recorded speeds
comparisons.py            errors of single steps, from comparisons with two half steps, and their sum over a run
drift.py                  the check of a reduced run
fastest.py                the fastest part of a machine at a state, by name
global_error.py           the difference of the motion from that of another solution, at every record
half_steps.py             comparison of a step with two steps of half its length
momenta.py                the momenta that a floating machine conserves
sizes.py                  sizes of states and of their differences
transport.py              the check of a run that tracks a prototype by energy
"""
