"""Statistics of signals over all steps of a run, stored instead of the signals: values for `record` of `run` and `keep` of
`sweep`.

maximum, minimum, mean, integral, final       one number for each entry of a signal
time_of_maximum, at_maximum                   instant of the largest value, and another signal at that instant
first_crossing                                time at which each entry first crosses a level
histogram                                     how often each entry lies in each interval
"""

from pfaffian.simulate.step.running_statistics import at_maximum as at_maximum
from pfaffian.simulate.step.running_statistics import final as final
from pfaffian.simulate.step.running_statistics import first_crossing as first_crossing
from pfaffian.simulate.step.running_statistics import histogram as histogram
from pfaffian.simulate.step.running_statistics import integral as integral
from pfaffian.simulate.step.running_statistics import maximum as maximum
from pfaffian.simulate.step.running_statistics import mean as mean
from pfaffian.simulate.step.running_statistics import minimum as minimum
from pfaffian.simulate.step.running_statistics import time_of_maximum as time_of_maximum
