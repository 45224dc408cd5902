"""What a run leaves: its result, why it stopped, its files.

constant_conditions.py    a warning of conditions that no motion changes
event_names.py            which event a run stopped at, and a warning of steps that were not split at all of theirs
event_table.py            the events of runs to an accuracy: when, of what, and how far velocities jumped
load_table.py             the peak loads of all joints as one table
lost_energies.py          a warning of potentials that have no number where a run went on
lost_numbers.py           which forces, constraints and laws have no number where a run stopped
near_dependent_rows.py    nearly dependent rows that the rank tolerance leaves out, with one warning
netcdf.py                 results to and from NetCDF 4 files, with a digest
passages.py               passages of a run through singular configurations, and changes of rank
provenance.py             the origin of a result: versions, the source files of the library, and the processor
record_memory.py          a check that the records of a run fit into memory
result.py                 results: an xarray.Dataset with names, units and provenance
stops.py                  why runs stopped: the reasons, by name, and one warning
trajectory_file.py        time histories from files of other tools
unreached.py              a warning of runs that did not reach their accuracy, and why
"""
