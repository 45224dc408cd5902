"""YAML, this library's own files.

yaml.py         reading model files in YAML
yaml_part.py    reading the entries of YAML files
"""
