"""The errors a caller can act on. Each message names the element at fault and the way out."""


class PfaffianError(Exception):
    """Root of every error that the library raises on purpose."""


class ModelError(PfaffianError, ValueError):
    """A mechanism, file, array or setting is wrong: which element, what is wrong with it, what to do."""


class RunError(PfaffianError, RuntimeError):
    """A computation could not go on: when, where, why."""


class BuildError(PfaffianError, RuntimeError):
    """A Program could not be traced, printed or compiled."""
