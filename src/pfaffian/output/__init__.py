"""Output of the program: text that is safe to print, folders, and files that are whole or absent."""
