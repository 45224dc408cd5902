"""Mechanisms to files: the suffix decides the format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pfaffian.errors import ModelError, ModelWarning, brief, notice
from pfaffian.formats.door import TEXTS
from pfaffian.formats.file import as_path
from pfaffian.formats.mjcf_write import mjcf_files
from pfaffian.formats.number import printable
from pfaffian.formats.run_settings import RunSettings
from pfaffian.formats.urdf_write import urdf_files
from pfaffian.formats.yaml_write import mesh_name, yaml_text
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.output.whole_file import write_whole

Files = dict[Path, str]
"""Path -> text."""


def _yaml(m: Mechanism, path: Path, settings: RunSettings | None) -> Files:
    return {path: yaml_text(m, settings, path.parent.resolve())}


_WRITERS: dict[str, Callable[[Mechanism, Path, RunSettings | None], Files]] = {
    ".yaml": _yaml,
    ".yml": _yaml,
    ".urdf": urdf_files,
    ".xml": mjcf_files,
    ".mjcf": mjcf_files,
}
"""Suffix -> what writes it."""


def write(mechanism: Mechanism, path: str | Path, settings: RunSettings | None = None) -> tuple[Path, ...]:
    """Write a mechanism to a file that `read` reads.

    YAML says all that a mechanism has, but for functions in Python; numbers are written to the last digit, so the mechanism
    that is read is equal; only long expressions of parameters may come back in another form. URDF says a tree of its own
    joints; a .yaml file of its name is written beside it that reads it together with loops, forces and motors. MJCF has
    closures, which MuJoCo makes soft, springs between points and motors. Motions are those of the mechanism, to rounding.

    Args:
        mechanism: the mechanism.
        path: of the file; its suffix tells the kind: .yaml or .yml, .urdf, and .xml or .mjcf for MJCF. A file that is there is
            replaced.
        settings: a run to write into the file, as `read` returns it; None, the default, for none.
    Returns: the files that were written.
    Warns ModelWarning: what the kind of file cannot say and no motion depends on; meshes that lie outside the file's folder.
    Raises ModelError: another suffix; an element that the kind of file cannot say, by name; a folder that is not there.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import pfaffian as pf
        >>> rod = pf.body("rod", mass=2.0, com=(0, 0, -0.5), inertia=0.1)
        >>> m = pf.mechanism("pendulum", [rod], [pf.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0))])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     files = pf.write(m, Path(folder, "pendulum.yaml"))
        ...     again, settings = pf.read(files[0])
        >>> again == m
        True
    """
    m, place = as_mechanism(mechanism), as_path(path)
    if settings is not None and not isinstance(settings, RunSettings):
        raise ModelError(f"write: settings are those that read returns, got {brief(settings)}")
    make = _WRITERS.get(place.suffix.lower())
    if make is None:
        raise ModelError(f"{printable(str(path))}: the suffix must be one of {', '.join(_WRITERS)}")
    files = make(m, place, settings)
    for name, text in files.items():
        try:
            write_whole(name, text.encode("utf-8"))
        except OSError as error:
            raise ModelError(f"{printable(str(name))} cannot be written: {error.strerror}") from None
    _tell_far_meshes(m, place)
    return tuple(files)


def _tell_far_meshes(m: Mechanism, place: Path) -> None:
    """Warn of meshes that no reader of the file finds by itself, since it opens what lies below the file's folder alone."""
    names = (mesh_name(s, place.parent.resolve()).get("file", "") for b in m.bodies for s in b.shapes if s.kind == "mesh")
    if far := sorted({str(Path(name).parent) for name in names if Path(name).is_absolute()}):
        option = "allow" if place.suffix.lower() in TEXTS else "meshes"
        folders = ", ".join(map(printable, far[:4])) + (", ..." if len(far) > 4 else "")
        notice(
            f"{printable(place.name)}: meshes lie outside its folder, so pictures find them only with pf.read(..., "
            f"{option}=[{folders}])",
            ModelWarning,
        )
