"""What a file says that it holds, against its own length and before any of it is read.

A few hundred bytes can announce, or unpack to, more than a machine has: datasets that were never filled,
chunks and archives of zeros, one array under a thousand names. What is read may be EXPANDS times as long as
its file.
"""

import math
import os
from os import PathLike
from pathlib import Path
from typing import IO, Any
from zipfile import ZipFile

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

EXPANDS, SMALL = 64, 4 << 20
"""Bytes in memory for a byte of a file, which packed numbers do not come to; bytes that any file may take."""


def require_fitting(claimed: int, length: int) -> None:
    """ValueError for a file of this length [bytes] that would take so much memory [bytes]."""
    if claimed > SMALL + EXPANDS * length:
        raise ValueError(f"its {length:,} bytes announce {claimed:,} of numbers, too many to be true")


def check_hdf5(file: Any) -> None:
    """Raise ValueError for an open HDF5 file of more than its length can hold, or with parts elsewhere."""
    from h5py import Dataset, HardLink, h5o

    length, claimed = Path(file.filename).stat().st_size, 0
    groups, seen = [file], set()
    while groups:
        group = groups.pop()
        for name in group:
            if not isinstance(group.get(name, getlink=True), HardLink):
                raise ValueError(f"{name} is a link to elsewhere, which is not followed")
            held = group[name]
            if isinstance(held, Dataset):
                claimed += _size(held, length)
                require_fitting(claimed, length)
            elif hasattr(held, "keys") and (address := h5o.get_info(held.id).addr) not in seen:
                seen.add(address)
                groups.append(held)


def _size(held: Any, length: int) -> int:
    """Bytes that reading a dataset may take [bytes]."""
    if held.is_virtual or held.external:
        raise ValueError(f"the values of {held.name} lie in other files, which are not read")
    require_fitting(math.prod(held.chunks or (0,)) * held.dtype.itemsize, length)
    # a text of any length may be as long as the file
    return (held.size or 0) * (length if held.dtype.hasobject else held.dtype.itemsize)


def read_archive(held: str | PathLike[str] | IO[bytes]) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz archive, at a path or open, by name.

    Raises ValueError, OSError, KeyError, EOFError or BadZipFile for one that is damaged, holds objects, or
    would take more than its length can hold.
    """
    arrays: dict[str, NDArray[Any]] = {}
    with ZipFile(held) as archive:
        entries = archive.infolist()
        assert archive.fp is not None
        length = archive.fp.seek(0, os.SEEK_END)
        require_fitting(sum(entry.file_size for entry in entries), length)
        for entry in entries:
            name = entry.filename.removesuffix(".npy")
            with archive.open(entry) as file:
                _check_header(file, entry.file_size, name)
            with archive.open(entry) as file:
                arrays[name] = npy.read_array(file, allow_pickle=False)
    return arrays


def _check_header(file: Any, size: int, name: str) -> None:
    """ValueError for an array that is not as long as its entry [bytes]."""
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(npy.read_magic(file))
    if read is None:
        raise ValueError(f"{name} is of another format than .npy 1 and 2")
    shape, _, dtype = read(file)
    if min(shape, default=0) < 0 or math.prod(shape) * np.dtype(dtype).itemsize != size - file.tell():
        raise ValueError(f"{name} announces {shape} of {dtype}, which is not what it holds")
