"""Untrusted text: XML, YAML, numbers, expressions, files that a file names."""
