"""Results of runs: why runs stopped, events along a run, and files.

causes                        why each run stopped
sign_changes                  times at which a signal changes its sign
singular_passages             times at which a run came closest to losing rank, and changes of its rank
read_netcdf, write_netcdf     a result as a file, written whole and with a checksum
write_mcap, write_rrd         a result for Foxglove, for rerun
write_mcap, write_rrd         a result for the viewers Foxglove and rerun
write_columns                 a result as a table, CSV or Parquet
read_table                    time histories from files of other tools, to compare with
"""

from pfaffian.simulate.record.netcdf import read_netcdf as read_netcdf
from pfaffian.simulate.record.netcdf import write_netcdf as write_netcdf
from pfaffian.simulate.record.passages import singular_passages as singular_passages
from pfaffian.simulate.record.result import causes as causes
from pfaffian.simulate.record.result import sign_changes as sign_changes
from pfaffian.simulate.record.trajectory_file import read_table as read_table
from pfaffian.viewer.logs import write_columns as write_columns
from pfaffian.viewer.logs import write_mcap as write_mcap
from pfaffian.viewer.logs import write_rrd as write_rrd
