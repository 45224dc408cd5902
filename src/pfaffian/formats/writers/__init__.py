"""Writers of URDF, MJCF and YAML files."""
