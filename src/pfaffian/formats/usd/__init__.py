"""USD with UsdPhysics."""
