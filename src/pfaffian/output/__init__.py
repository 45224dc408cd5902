"""What leaves the program: text that a terminal may print, folders, files that are whole or absent."""
