"""Results of runs: why runs stopped, what they passed, and files.

causes                        why each run stopped
sign_changes                  when an entry of a signal passes zero
singular_passages             when a run passed a singular configuration, and what it did there
read_netcdf, write_netcdf     a result as a file, whole and sealed
"""

from pfaffian.simulate.netcdf import read_netcdf, write_netcdf
from pfaffian.simulate.passages import singular_passages
from pfaffian.simulate.result import causes, sign_changes

__all__ = ["causes", "read_netcdf", "sign_changes", "singular_passages", "write_netcdf"]
