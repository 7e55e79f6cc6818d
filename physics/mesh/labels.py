"""Segmented volumes, NRRD and NIfTI, in which each voxel has the number of the part that it belongs to.

Axes are those of NIfTI, x to the patient's right, y to the front, z to the head, and lengths in metres.
Formats: teem.sourceforge.net/nrrd/format.html; R. W. Cox et al., A (sort of) new image data format standard:
NIfTI-1 (2004).
"""

import bz2
import gzip
import math
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import find_objects, gaussian_filter, map_coordinates
from scipy.spatial.transform import Rotation

from palpo.physics.numerics.errors import InputError

Floats = NDArray[np.float64]
Read = tuple[NDArray[Any], Floats, Floats, dict[int, str]]
"""Values, axes and origin of voxels [m], and names of parts."""

SEGMENTED = (".nrrd", ".nii", ".nii.gz")
"""Endings of the names of such files."""
MOST_VOXELS = 2**28
"""512 x 512 x 1024."""
MOST_PARTS = 4096
"""Different numbers in a file; one with more is the image itself."""
LONGEST_HEADER = 2**20
"""[bytes]"""
METRES = {"m": 1.0, "cm": 1e-2, "mm": 1e-3, "um": 1e-6, "": 1e-3}
"""Metres of a unit by its name in headers; where they say nothing, it is millimetres."""
NIFTI_UNITS = {0: "", 1: "m", 2: "mm", 3: "um"}
NIFTI_TYPES = {
    2: "u1", 4: "i2", 8: "i4", 16: "f4", 64: "f8", 256: "i1", 512: "u2", 768: "u4", 1024: "i8", 1280: "u8",
}  # fmt: skip
NRRD_TYPES = {
    "char": "i1", "int8": "i1", "uchar": "u1", "unsigned char": "u1", "uint8": "u1",
    "short": "i2", "int16": "i2", "ushort": "u2", "unsigned short": "u2", "uint16": "u2",
    "int": "i4", "int32": "i4", "uint": "u4", "unsigned": "u4", "uint32": "u4",
    "longlong": "i8", "long long": "i8", "int64": "i8", "ulonglong": "u8", "unsigned long long": "u8",
    "uint64": "u8", "float": "f4", "double": "f8",
}  # fmt: skip
"""Without "signed", "_t" and a last "int"."""
_NAMES = [
    "dim", "datatype", "pixdim", "vox_offset", "scl_slope", "scl_inter", "xyzt_units", "qform_code",
    "sform_code", "quatern", "qoffset", "srow",
]  # fmt: skip
NIFTI = {
    348: np.dtype({
        "names": _NAMES,
        "formats": ["8i2", "i2", "8f4", "f4", "f4", "f4", "u1", "i2", "i2", "3f4", "3f4", "(3,4)f4"],
        "offsets": [40, 70, 76, 108, 112, 116, 123, 252, 254, 256, 268, 280],
        "itemsize": 348,
    }),
    540: np.dtype({
        "names": _NAMES,
        "formats": ["8i8", "i2", "8f8", "i8", "f8", "f8", "i4", "i4", "i4", "3f8", "3f8", "(3,4)f8"],
        "offsets": [16, 12, 104, 168, 176, 184, 500, 344, 348, 352, 376, 400],
        "itemsize": 540,
    }),
}  # fmt: skip
"""Headers of NIfTI-1 and NIfTI-2 by their length [bytes]: what is read of them."""
SMOOTHED, REACH = 1.0, 4
"""Standard deviation of the Gaussian that takes the steps off a part, and how far it reaches [voxels]."""
SPREAD = (0.5 + np.arange(400_000) * 1.2207440846057596 ** -np.arange(1.0, 4.0)[:, None]) % 1.0
"""Points that fill a cube evenly, by powers of the root of x^4 = x + 1, shape (3, n) (M. Roberts, The
unreasonable effectiveness of quasirandom sequences, 2018)."""


@dataclass(frozen=True, eq=False)
class LabelVolume:
    """A segmented volume.

    labels: number of the part in each voxel, 0 for none, shape (a, b, c). axes: columns are the steps from a
    voxel to the next along each index [m], shape (3, 3). origin: middle of voxel (0, 0, 0) [m], shape (3,).
    names: of parts, where the file has them.
    """

    labels: NDArray[np.integer]
    axes: Floats
    origin: Floats
    source: str
    names: dict[int, str] = field(default_factory=dict)

    @property
    def steps(self) -> Floats:
        """From a voxel to the next along each index [m], shape (3,)."""
        return np.linalg.norm(self.axes, axis=0)

    @property
    def voxel(self) -> float:
        """Volume of a voxel [m^3]."""
        return abs(float(np.linalg.det(self.axes)))

    def parts(self) -> dict[int, int]:
        """Voxels of each part, by its number."""
        numbers, counts = _distinct(self.labels)
        return {int(n): int(c) for n, c in zip(numbers, counts, strict=True) if n != 0}

    def part(self, label: int) -> "LabelledPart":
        """One part, smoothed; InputError for a number that no voxel has."""
        held = self.parts()
        if label not in held:
            known = ", ".join(map(str, list(held)[:20])) + (", ..." if len(held) > 20 else "")
            raise InputError(f"{self.source}: no voxel has label = {label}; it has {known or 'no parts'}.")
        there = self.labels == label
        box = find_objects(there.view(np.int8))[0]
        low = np.array([side.start for side in box]) - REACH - 1
        return LabelledPart(self, label, low, np.pad(there[box].astype(np.float32), REACH + 1))

    def place(self, index: Floats) -> Floats:
        """Where indices (n, 3) are [m], shape (n, 3)."""
        return self.origin + index @ self.axes.T

    def at_border(self, label: int) -> bool:
        """Whether a part reaches the border of the volume, where it is cut flat."""
        ends = (self.labels.take((0, -1), axis=k) for k in range(3))
        return any(bool((end == label).any()) for end in ends)


class LabelledPart:
    """A part as a smooth function of place, positive inside, whose volume is that of the part's voxels."""

    def __init__(
        self, whole: LabelVolume, label: int, low: NDArray[np.integer], solid: NDArray[np.float32]
    ) -> None:
        self.whole, self.low = whole, low
        self.name = f"{whole.source}, label {label}"
        inside = int(solid.sum())
        self.volume = inside * whole.voxel
        """[m^3]"""
        self.smooth = gaussian_filter(solid, SMOOTHED, truncate=REACH, mode="constant")
        # the level that encloses the volume of the part's voxels: smoothing neither shrinks nor swells it
        ends = np.array(solid.shape) - 1.0
        spread = map_coordinates(self.smooth, ends[:, None] * SPREAD, output=np.float64, order=1)
        self.level = float(np.quantile(spread, 1.0 - inside / ends.prod()))
        self.middle = whole.place(np.argwhere(solid).mean(axis=0) + low)
        """Of its voxels [m], shape (3,)."""
        corners = np.array(np.meshgrid(*((0, n - 1) for n in solid.shape))).reshape(3, -1).T
        placed = whole.place(corners + low)
        self.box = np.array([placed.min(axis=0), placed.max(axis=0)])
        """Two corners around it [m], shape (2, 3)."""

    def inside(self, points: Floats) -> Floats:
        """Above 0 inside, at points (n, 3) [m], shape (n,)."""
        at = np.linalg.solve(self.whole.axes, (points - self.whole.origin).T) - self.low[:, None]
        return np.asarray(map_coordinates(self.smooth, at, output=np.float64, order=1, cval=0.0)) - self.level


def read_labels(path: str | PathLike[str]) -> LabelVolume:
    """The segmented volume of a file; InputError, naming file, key and value, for what is none."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            read = _read_nrrd if path.suffix.lower() == ".nrrd" else _read_nifti
            values, axes, origin, names = read(file)
        labels = _as_labels(values)
        if not (np.isfinite(axes).all() and np.isfinite(origin).all()):
            raise ValueError(f"its axes are {axes.tolist()} at {origin.tolist()}, which are not all numbers")
        if not abs(np.linalg.det(axes)) > 1e-6 * np.prod(np.linalg.norm(axes, axis=0)):
            raise ValueError(f"its axes are {axes.tolist()}, which do not span space")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}).") from None
    except (ValueError, KeyError, OverflowError, EOFError, zlib.error, MemoryError) as error:
        reason = " ".join(str(error).split())[:200].rstrip(".") or type(error).__name__
        raise InputError(f"{path}: no segmented volume that can be read: {reason}.") from None
    return LabelVolume(labels, axes, origin, str(path), names)


def _distinct(labels: NDArray[np.integer]) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
    """Different values, rising, and how often each is there."""
    low = int(labels.min())
    counts = np.bincount(labels.ravel().astype(np.int32) - low)
    held = np.flatnonzero(counts)
    return held + low, counts[held]


def _as_labels(values: NDArray[Any]) -> NDArray[np.integer]:
    """Whole numbers of a small range, whatever kind they are stored as."""
    low, high = values.min(), values.max()
    if not (np.isfinite(low) and np.isfinite(high)):
        raise ValueError("some of its values are no numbers")
    if low < -32768 or high > 2**20:
        raise ValueError(f"its values go from {low:g} to {high:g}; labels are whole numbers up to {2**20}")
    whole: NDArray[np.integer] = values.astype(np.int16 if high < 32768 else np.int32)
    if values.dtype.kind == "f" and (odd := values != whole).any():
        raise ValueError(f"it holds {values[odd][0]:g}; labels are whole numbers, so segment the image first")
    parts = len(_distinct(whole)[0])
    if parts > MOST_PARTS:
        raise ValueError(
            f"it holds {parts} different values; that is an image, which must be segmented first"
        )
    return whole


def _array(stream: IO[bytes], shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Values from where a stream stands, first index fastest; no more is read than they take."""
    sizes = " x ".join(map(str, shape))
    if len(shape) != 3 or min(shape) < 1:
        use = (
            "segments that overlap and times have a volume each; save one" if len(shape) > 3 else "give three"
        )
        raise ValueError(f"its sizes are {sizes}; {use}")
    count = math.prod(shape)
    sizes = sizes if len(sizes) < 60 else f"{sizes[:60]}..."
    if count > MOST_VOXELS:
        raise ValueError(f"it announces {sizes} voxels; more than {MOST_VOXELS} are not read")
    if dtype.kind not in "iuf":
        raise ValueError(f"its values are of type {dtype}; labels are whole numbers")
    parts, missing = [], count * dtype.itemsize
    while missing and (block := stream.read(min(missing, 2**24))):
        parts.append(block)
        missing -= len(block)
    if missing:
        raise ValueError(f"{missing} bytes are missing of the {count} voxels that it announces")
    return np.frombuffer(b"".join(parts), dtype).reshape(shape, order="F")


def _read_nrrd(file: IO[bytes]) -> Read:
    begun = file.read(LONGEST_HEADER)
    end = re.search(rb"\r?\n\r?\n", begun)
    if not begun.startswith(b"NRRD") or end is None:
        raise ValueError("it has no NRRD header that ends with an empty line")
    lines = begun[: end.start()].decode("utf-8", "replace").splitlines()[1:]
    rows = [re.split(r":=?", line, maxsplit=1) for line in lines if ":" in line and not line.startswith("#")]
    told = {key.strip(): value.strip() for key, value in rows}
    if detached := told.keys() & {"data file", "datafile"}:
        raise ValueError(f'"{detached.pop()}" says that values are in another file; save one file')
    for key in ("line skip", "byte skip"):
        if told.get(key, "0") != "0":
            raise ValueError(f'"{key}" is {told[key]}, where values begin after the header')
    openers: dict[str, Callable[[IO[bytes]], Any]] = {
        "raw": lambda raw: raw, "gzip": _unpacked, "gz": _unpacked, "bzip2": bz2.BZ2File, "bz2": bz2.BZ2File,
    }  # fmt: skip
    opener = _chosen(told, "encoding", openers)
    kind = re.sub(r"^signed |_t$| int$", "", told.get("type", ""))
    dtype = np.dtype(_chosen({"type": kind}, "type", NRRD_TYPES))
    order = _chosen(told, "endian", {"little": "<", "big": ">"}) if dtype.itemsize > 1 else "="
    sizes = tuple(int(n) for n in told.get("sizes", "").split())
    if "space directions" in told:
        steps = _vectors(told["space directions"])
    elif "spacings" in told:
        steps = np.diag([float(x) for x in told["spacings"].split()][-3:])
    else:
        raise ValueError('neither "space directions" nor "spacings" say how large a voxel is')
    if len(sizes) == 4 and sizes[0] == 1:
        sizes = sizes[1:]
    file.seek(end.end())
    values = _array(opener(file), sizes, np.dtype(order + dtype.str[1:]))
    if steps.shape != (3, 3):
        raise ValueError(f'"space directions" are {told.get("space directions")}; three vectors are needed')
    origin = _vectors(told.get("space origin", "(0,0,0)"))[0]
    # a space names where its axes point; those to left and back are turned to right and front
    space = told.get("space", "").lower()
    words = space.split("-") if "-" in space else list(space)
    turn = np.array([-1.0 if word[:1] in ("l", "p", "i") else 1.0 for word in words[:3]])
    turn = np.ones(3) if space.startswith(("scanner", "3d")) or len(turn) < 3 else turn
    unit = _unit(re.findall(r'"([^"]*)"', f"{told.get('space units', '')} {told.get('units', '')}"))
    names = {
        int(told[key]): told.get(key.replace("LabelValue", "Name"), "")
        for key in told
        if re.fullmatch(r"Segment\d+_LabelValue", key)
    }
    return values, unit * turn[:, None] * steps.T, unit * turn * origin, names


def _vectors(text: str) -> Floats:
    """Rows of "(1,0,0) none (0,1,0)", without those that are none."""
    return np.array([[float(x) for x in row.split(",")] for row in re.findall(r"\(([^)]*)\)", text)])


def _unpacked(file: IO[bytes]) -> Any:
    return gzip.GzipFile(fileobj=file)


def _chosen(told: Mapping[str, str], key: str, choices: Mapping[str, Any]) -> Any:
    """What a key of a header chooses; ValueError for a value that is not read."""
    value = told.get(key, "").lower()
    if value not in choices:
        raise ValueError(f'"{key}" is {value or "missing"}; use {", ".join(choices)}')
    return choices[value]


def _unit(said: list[str]) -> float:
    """Metres of a file's unit."""
    names = {name.strip() for name in said} or {""}
    if len(names) > 1 or not names <= METRES.keys():
        raise ValueError(f"its unit is {' and '.join(sorted(names))}; use mm, cm or m")
    return METRES[names.pop()]


def _read_nifti(file: IO[bytes]) -> Read:
    packed = file.read(2) == b"\x1f\x8b"
    file.seek(0)
    stream: Any = _unpacked(file) if packed else file
    begun = stream.read(4)
    order = {int.from_bytes(begun, "little"): "<", int.from_bytes(begun, "big"): ">"}
    size = next((size for size in NIFTI if size in order), 0)
    data = begun + stream.read(max(size - 4, 0))
    if not size or len(data) < size:
        raise ValueError("it has no header of NIfTI-1 or NIfTI-2")
    told = np.frombuffer(data, NIFTI[size].newbyteorder(cast(Any, order[size])))[0]
    first = float(told["vox_offset"])
    if not size <= first <= LONGEST_HEADER:
        raise ValueError(f'"vox_offset" is {first:g}; values stand behind the header, in the same file')
    stream.read(int(first) - size)
    if not 3 <= (n := int(told["dim"][0])) <= 7:
        raise ValueError(f'"dim" begins with {n}, the number of its dimensions; it takes three')
    shape = tuple(int(k) for k in told["dim"][1 : n + 1])
    while len(shape) > 3 and shape[-1] == 1:
        shape = shape[:-1]
    if (code := int(told["datatype"])) not in NIFTI_TYPES:
        raise ValueError(f'"datatype" is {code}; labels are whole numbers')
    values = _array(stream, shape, np.dtype(order[size] + NIFTI_TYPES[code]))
    slope, shift = float(told["scl_slope"]), float(told["scl_inter"])
    if slope not in (0.0, 1.0) or (slope and shift):
        values = slope * values + shift
    unit = _unit([NIFTI_UNITS.get(int(told["xyzt_units"]) & 7, "?")])
    steps = told["pixdim"].astype(float)
    if told["sform_code"] > 0:
        axes, origin = told["srow"][:, :3], told["srow"][:, 3]
    elif told["qform_code"] > 0:
        b, c, d = (float(x) for x in told["quatern"])
        turned = Rotation.from_quat((b, c, d, math.sqrt(max(0.0, 1.0 - b * b - c * c - d * d))))
        axes = turned.as_matrix() * (steps[1:4] * (1.0, 1.0, -1.0 if steps[0] < 0.0 else 1.0))
        origin = told["qoffset"]
    else:
        axes, origin = np.diag(steps[1:4]), np.zeros(3)
    return values, unit * axes.astype(float), unit * origin.astype(float), {}
