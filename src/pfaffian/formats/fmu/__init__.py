"""FMUs of other tools, as data: their variables, and what their binaries can do. Nothing of an FMU runs here.

fmu_file.py      `read_fmu`: the description of an FMU as an `FMU`
fmu_contents.py  the archive of an FMU, checked before anything is unpacked
"""
