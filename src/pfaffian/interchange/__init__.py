"""Machines inside other people's simulators, and results in other people's viewers.

fmu.py            `fmu` writes a machine as an FMU for co-simulation or model exchange
machine.py        what an FMU computes: the Programs of its equations, its start, its faults
variables.py      its variables, with names, units and value references
description.py    modelDescription.xml in FMI 2.0 and 3.0
text.py           its C text
archive.py        the files of an FMU, compiled and packed
logs.py           results as MCAP, rerun, CSV and Parquet files
"""
