"""Numbers that a run keeps of a signal over all of its steps, instead of the signal: values for `record` of `run` and `keep` of
`sweep`.

maximum, minimum, mean, integral, final       one number for each entry of a signal
first_crossing                                when each entry first passes a level
histogram                                     how long each entry is in which interval
"""

from pfaffian.simulate.statistics import final, first_crossing, histogram, integral, maximum, mean, minimum

__all__ = [
    "final",
    "first_crossing",
    "histogram",
    "integral",
    "maximum",
    "mean",
    "minimum",
]
