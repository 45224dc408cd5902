"""The command `pfaffian`. What takes long to import is imported where it is used, so that --help answers at once.

main.py             the entrance: it finds the command, and turns errors and warnings into lines and a status
terminal.py         the exit status; standard error, and a standard output that may be full
chosen_machine.py   the machine and the settings that a command line names: its file, --set, numbers in words
run_command.py      run a file; write its result and a figure
sweep_command.py    run the sweep of a file into a store
info_command.py     describe a file
fit_command.py      fit a machine to records
study_command.py    run a study and check its claims
zoo_command.py      show a machine of the zoo and check its number
export_command.py   write a law as C99
fmu_command.py      write a machine as an FMU
docs_command.py     the pages of the manual
doctor_command.py   check this computer

A command is a file with its `arguments` and its `command`, and a row of `main.COMMANDS`.
"""
