"""Comparison of model files with the engines of their formats: python -m tools.compare_files FORMAT FOLDER..."""
