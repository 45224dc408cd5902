"""Results to and from NetCDF 4 files, with a digest at the end of the file that reveals any change since it was written."""

from __future__ import annotations

import hashlib
from io import BytesIO
from pathlib import Path
from typing import Any

import xarray as xr

from pfaffian.errors import ModelError, RunError, brief
from pfaffian.formats.text.file import as_path
from pfaffian.output.whole_file import write_whole

SEAL = b"\npfaffian sha256 "
"""Marks the end of the HDF5 data. HDF5 readers ignore it and the sha256 that follows, of all bytes before, in hexadecimal."""

CHUNK = 4 << 20
"""Approximate size [bytes] of the blocks that each have an HDF5 checksum."""


def write_netcdf(result: xr.Dataset, path: str | Path) -> None:
    """Write a result to a NetCDF 4 file; the file is complete, or there is none.

    The file is built in memory first, because HDF5 does not survive a disk that fills up during writing. Every array has an
    HDF5 checksum, which any reader can check, and the whole file has a sha256 for `read_netcdf`.

    Args:
        result: a Dataset, as `run` returns it.
        path: path of the file.
    Raises ModelError: result is not a Dataset.
    Raises RunError: the file cannot be written.

    Example:
        >>> import tempfile
        >>> import pfaffian as pf
        >>> slide = pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0))
        >>> m = pf.mechanism("block", [pf.body("box", mass=2.0)], [slide])
        >>> result = pf.run(m, v=[3.0], duration=0.1, step=0.01, backend="numpy")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pf.results.write_netcdf(result, f"{folder}/block.nc")
        ...     pf.results.read_netcdf(f"{folder}/block.nc").identical(result)
        True
    """
    if not isinstance(result, xr.Dataset):
        raise ModelError(f"write_netcdf(result, path): a Dataset is needed, got {brief(result)}")
    place = as_path(path)
    encoding = {name: _encoding(x) for name, x in result.variables.items()}
    try:
        stored = result.to_netcdf(engine="h5netcdf", encoding=encoding)
        write_whole(place, stored, SEAL + hashlib.sha256(stored).hexdigest().encode())
    except (OSError, ValueError, TypeError, MemoryError) as error:
        reason = getattr(error, "strerror", None) or error or "it does not fit into memory"
        raise RunError(f"cannot write {path}: {reason}") from error


def _encoding(x: xr.Variable) -> dict[str, Any]:
    """Encoding of an array: numbers are stored with checksums, in chunks along the first axes."""
    if x.dtype.kind not in "fiub" or not x.size:
        return {}
    chunk: list[int] = []
    left = max(1, CHUNK // x.dtype.itemsize)
    for length in reversed(x.shape):
        chunk.insert(0, min(length, max(1, left)))
        left //= chunk[0]
    return {"fletcher32": True, "chunksizes": tuple(chunk)} if chunk else {}


def read_netcdf(path: str | Path) -> xr.Dataset:
    """Read a result from a file of `write_netcdf` into memory, and check that the file has not changed.

    Args:
        path: path of the file.
    Returns:
        The Dataset that was written.
    Raises RunError: the file cannot be read, was not written by `write_netcdf`, or has changed since.

    Example:
        >>> import tempfile
        >>> import pfaffian as pf
        >>> slide = pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0))
        >>> m = pf.mechanism("block", [pf.body("box", mass=2.0)], [slide])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pf.results.write_netcdf(pf.run(m, v=[3.0], duration=0.1, step=0.01, backend="numpy"), f"{folder}/block.nc")
        ...     pf.results.causes(pf.results.read_netcdf(f"{folder}/block.nc"))
        ['finished']
    """
    place = as_path(path)
    try:
        data = place.read_bytes()
        at = len(data) - len(SEAL) - 64
        stored, seal = data[: max(at, 0)], data[max(at, 0) :]
        if seal != SEAL + hashlib.sha256(stored).hexdigest().encode():
            raise RunError(
                f"cannot read {path} as a result: it is damaged, or was not written by write_netcdf; "
                "xarray.open_dataset reads other NetCDF files, unchecked"
            )
        with xr.open_dataset(BytesIO(stored), engine="h5netcdf") as opened:
            return opened.load()
    except (OSError, ValueError, MemoryError) as error:
        raise RunError(f"cannot read {path} as a result: {error}") from error
