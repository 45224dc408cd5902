"""YAML, this library's own files.

yaml.py         reading model files in YAML
yaml_part.py    reading the entries of YAML files
yaml_kinds.py   kinds of forces and rolling contacts, a row each
yaml_value.py   values in the entries: poses, shapes, surfaces, functions
"""
