"""YAML, this library's own files."""
