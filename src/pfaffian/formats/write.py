"""Writing a mechanism to a file, in the format of its suffix."""

from __future__ import annotations

from pathlib import Path

from pfaffian.errors import ModelError, ModelWarning, brief, notice
from pfaffian.formats.read import FORMATS, TEXTS
from pfaffian.formats.text.file import as_path
from pfaffian.formats.text.run_settings import RunSettings
from pfaffian.formats.text.strict_number import printable
from pfaffian.formats.writers.yaml_write_part import mesh_name
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.output.whole_file import write_whole


def write(mechanism: Mechanism, path: str | Path, settings: RunSettings | None = None) -> tuple[Path, ...]:
    """Write a mechanism to a file that `read` opens.

    A YAML file contains the whole mechanism, except functions in Python. Numbers are written to the last digit, so reading the
    file gives an equal mechanism; only long expressions of parameters may return in another form. A URDF file contains the
    tree, with the joint types of URDF; a .yaml file of the same name is written with it, which reads it and adds loops, forces
    and motors. An MJCF file contains closures, which are soft in MuJoCo, springs between points, and motors. The motion of
    the mechanism that is read equals that of the original, up to rounding.

    Args:
        mechanism: the mechanism.
        path: of the file. The suffix selects the format: .yaml or .yml, .urdf, and .xml or .mjcf for MJCF. An existing file is
            replaced.
        settings: of a run to write into the file, as `read` returns them; None, the default, writes none.
    Returns: the paths of the files that were written.
    Warns ModelWarning: details that the format cannot represent, if no motion depends on them; meshes outside the file's
    folder; in MJCF, springs, friction and motors of a closure whose angle no tendon adds up, without which the motion differs.
    Raises ModelError: an unknown suffix; an element that the format cannot represent, by name; a file that cannot be written.

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
        raise ModelError(f"write: settings must be RunSettings, as pf.read returns them, got {brief(settings)}")
    makers = {suffix: f.writer for f in FORMATS.values() if f.write is not None for suffix in f.suffixes}
    make = makers.get(place.suffix.lower())
    if make is None:
        raise ModelError(f"{printable(str(path))}: the suffix of the file must be one of {', '.join(makers)}")
    files = make()(m, place, settings)
    for name, text in files.items():
        try:
            write_whole(name, text.encode("utf-8"))
        except OSError as error:
            raise ModelError(f"{printable(str(name))} cannot be written: {error.strerror}") from None
    _warn_far_meshes(m, place)
    return tuple(files)


def _warn_far_meshes(m: Mechanism, place: Path) -> None:
    """Warn of meshes outside the file's folder, which a reader of the file does not find without an option."""
    names = (mesh_name(s, place.parent.resolve()).get("file", "") for b in m.bodies for s in b.shapes if s.kind == "mesh")
    if far := sorted({str(Path(name).parent) for name in names if Path(name).is_absolute()}):
        option = "allow" if place.suffix.lower() in TEXTS else "meshes"
        folders = ", ".join(map(printable, far[:4])) + (", ..." if len(far) > 4 else "")
        notice(
            f"{printable(place.name)}: meshes lie outside its folder, so pictures find them only with pf.read(..., "
            f"{option}=[{folders}])",
            ModelWarning,
        )
