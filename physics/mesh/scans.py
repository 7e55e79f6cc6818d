"""Surfaces of PLY and glTF files, as scanners and modelling programs write them."""

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SCANS = (".ply", ".glb", ".gltf")
"""Endings of the names of such files."""
MOST_CORNERS = 20_000_000
"""Corners of triangles that the nodes of a glTF file may show, a mesh counted each time that it is shown."""
GLB, JSON_CHUNK = b"glTF", 20
"""How a binary glTF file begins, and where its JSON does [bytes]."""


def read_scan(path: Path) -> tuple[NDArray[Any], dict[str, NDArray[Any]]]:
    """Vertices (n, 3) and triangles (m, 3), by kind, of such a file, all its parts where they are placed.

    Equal vertices are one: these formats repeat a vertex for each of its normals and colours. Raises
    ValueError for what is none, and whatever trimesh raises.
    """
    import trimesh  # late: a third of a second that generated scenes need not pay

    data, suffix = path.read_bytes(), path.suffix.lower()
    if suffix != ".ply":
        _check(_header(data), len(data))
    told: dict[str, Any] = {} if suffix == ".ply" else {"skip_materials": True}
    shown: Any = trimesh.load(io.BytesIO(data), file_type=suffix[1:], force="mesh", process=False, **told)
    vertices, which = np.unique(np.asarray(shown.vertices, np.float64), axis=0, return_inverse=True)
    return vertices, {"triangle": which.reshape(-1)[np.asarray(shown.faces, np.int64)]}


def _header(data: bytes) -> dict[str, Any]:
    """What a glTF file says of itself."""
    binary = data[:4] == GLB
    text = data[JSON_CHUNK : JSON_CHUNK + int.from_bytes(data[12:16], "little")] if binary else data
    said = json.loads(text)
    if not isinstance(said, dict):
        raise ValueError("no table")
    return said


def _check(said: Mapping[str, Any], size: int) -> None:
    """ValueError for other files, more than a file of `size` bytes holds, and nodes that are no tree."""
    for buffer in said.get("buffers", ()):
        if "base64," not in buffer.get("uri", "base64,"):
            raise ValueError("its data are in another file; export it as one file, .glb")
    counts = [accessor["count"] for accessor in said.get("accessors", ())]
    if any(not isinstance(n, int) or not 0 <= n <= size for n in counts):
        raise ValueError(f"it announces more values than its {size} bytes hold")
    nodes = said.get("nodes", ())
    below = [child for node in nodes for child in node.get("children", ())]
    below += [root for scene in said.get("scenes", ()) for root in set(scene.get("nodes", ()))]
    if len(set(below)) < len(below):
        raise ValueError("one of its nodes stands in two places")
    corners = [
        sum(counts[part.get("indices", part["attributes"]["POSITION"])] for part in mesh["primitives"])
        for mesh in said.get("meshes", ())
    ]
    if sum(corners[node["mesh"]] for node in nodes if "mesh" in node) > MOST_CORNERS:
        raise ValueError("it shows more triangles than are read here")
