"""Machines inside other people's simulators, and parts from these in a machine.

fmu.py             `fmu` writes a machine as an FMU for co-simulation or model exchange
machine.py         what an FMU computes: the Programs of its equations, its start, its faults
fmu_variables.py   its variables, with names, units and value references
fmu_description.py modelDescription.xml in FMI 2.0 and 3.0
contents.py        the files in it
fmu_text.py        its C text
c_tables.py        numbers and words as C text
accurate_step.py   steps under error control: their Programs and numbers
archive.py         the files of an FMU, compiled and packed
fmu_law.py         `fmu_law`: an FMU of another tool as a part of a machine
running_fmu.py     one instance of such an FMU, started, stepped and read through fmpy
instance.h         one instance of the machine in an importer, and its variables
law_parts.h        parts of a law at time events or ticks of clocks
co_simulation.h    steps by the time loop of a run
accurate.h         steps under error control
model_exchange.h   rates, their derivatives, and the way back onto the constraints
fmi2.h, fmi3.h     the functions of FMI 2.0 and 3.0
"""
