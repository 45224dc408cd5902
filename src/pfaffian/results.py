"""Results of runs: why runs stopped, events along a run, files, and the figures of each trade.

causes                        why each run stopped
sign_changes                  times at which a signal changes its sign
singular_passages             times at which a run came closest to losing rank, and changes of its rank
read_netcdf, write_netcdf     a result as a file, written whole and with a checksum
write_mcap, write_rrd         a result for the viewers Foxglove and rerun
write_columns                 a result as a table, CSV or Parquet
read_table                    time histories from files of other tools, to compare with
plot_loads                    forces of pins over a stroke or over time, with the largest marked
plot_motion                   coordinates and ratios of a linkage over its crank
plot_travel                   camber, toe and other curves of a suspension over the travel of its wheel
plot_root_locus               eigenvalues in the complex plane over a parameter
plot_campbell                 natural frequencies over the speed of a rotor, with critical speeds
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
from pfaffian.viewer.spectra import plot_campbell as plot_campbell
from pfaffian.viewer.spectra import plot_root_locus as plot_root_locus
from pfaffian.viewer.strokes import plot_loads as plot_loads
from pfaffian.viewer.strokes import plot_motion as plot_motion
from pfaffian.viewer.strokes import plot_travel as plot_travel
