"""Output of the library: text that is safe to print, folders, and files that are whole or absent."""
