"""Output of the library: text that is safe to print, folders, and files that are whole or absent.

folder.py        folders for results, created before a long run and not after it
plain.py         text from files in a form that is safe for a terminal, a figure
table_file.py    tables as .csv and .xlsx
whole_file.py    files that are whole or absent, whatever happens during writing
"""
