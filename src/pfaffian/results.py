"""Results of runs: why runs stopped, what they passed, and files.

causes                        why each run stopped
sign_changes                  when an entry of a signal passes zero
singular_passages             when a run passed a singular configuration, and what it did there
read_netcdf, write_netcdf     a result as a file, whole and sealed
"""

from pfaffian.simulate.netcdf import read_netcdf as read_netcdf
from pfaffian.simulate.netcdf import write_netcdf as write_netcdf
from pfaffian.simulate.passages import singular_passages as singular_passages
from pfaffian.simulate.result import causes as causes
from pfaffian.simulate.result import sign_changes as sign_changes
