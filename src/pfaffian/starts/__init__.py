"""States from which a run may begin: on the constraints, in equilibrium, after an impact, at singular configurations."""
