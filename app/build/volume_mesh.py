"""Tetrahedra in a closed surface, by Palpo or by Gmsh; in a STEP solid, and triangles on it, by Gmsh.

Palpo cuts a lattice along the surface and moves nodes onto its sharp edges: the same mesh on every machine.
Gmsh (C. Geuzaine, J.-F. Remacle, Gmsh: a 3-D finite element mesh generator with built-in pre- and
post-processing facilities, International Journal for Numerical Methods in Engineering 79, 2009) is under the
GPL: no part of Palpo and never loaded by it. It runs as a program of its own, which reads a file and writes
another, and only for files that need it.
"""

import hashlib
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from palpo.app.cli.progress import Progress, Silent
from palpo.app.runtime.memory import require_stiffness
from palpo.config.schema.geometry import Segment, VolumeFile
from palpo.config.words import Refusal
from palpo.physics.bodies.io import content_key
from palpo.physics.collision.distance_field import exact_field, signed_distance
from palpo.physics.mesh import io, labels
from palpo.physics.mesh.creases import SHARP, onto_creases
from palpo.physics.mesh.hex import HexMesh
from palpo.physics.mesh.stuffing import stuffed
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.mesh.tet import TetMesh, largest_piece, validate_tets
from palpo.physics.numerics.cache import cache_folder
from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.own import keep, kept

Read = TypeVar("Read")

DIMENSIONS = {"1D": 0.0, "2D": 0.1, "3D": 0.4}
"""Share of the work that is done when Gmsh begins with edges, faces, the inside."""
GMSH = "import sys, gmsh; gmsh.initialize(sys.argv, run=True); gmsh.finalize()"
MOST_LOST = 0.15
"""Share of a surface's volume that a lattice may leave out, at its corners."""
LEAST_WHOLE = 0.95
"""Share of a segmented part's volume that must hang together."""
_STEP = re.compile(r"Meshing (\dD)")
_SHARE = re.compile(r"\[\s*(\d+)%\]")

STL = """
Merge "{file}";
ClassifySurfaces{{{sharp} * Pi / 180, 1, 1, Pi}};
CreateGeometry;
Surface Loop(1) = Surface{{:}};
Volume(1) = {{1}};
"""
STEP = """
SetFactory("OpenCASCADE");
Merge "{file}";
"""
RULES = """
General.NumThreads = 1;
Mesh.MeshSizeMin = {size};
Mesh.MeshSizeMax = {size};
Mesh.MeshSizeFromPoints = 0;
Mesh.Algorithm = 6;
Mesh.Algorithm3D = 1;
Mesh.Optimize = 1;
Mesh.OptimizeNetgen = 1;
Mesh.MshFileVersion = 2.2;
"""


def meshed(path: str, size: float, dimension: int, progress: Progress, read: Callable[[Path], Read]) -> Read:
    """What `read` makes of the .msh file of an STL or STEP file with edges of `size`, in the file's unit.

    The mesh is kept by content. dimension: 2 for triangles on it, 3 for tetrahedra in it. Raises Refusal
    where there is no Gmsh, and InputError for what it cannot mesh.
    """
    file = Path(path)
    text = (STL if file.suffix.lower() == ".stl" else STEP) + RULES
    name = content_key(file.read_bytes().hex(), size, dimension, SHARP, text) + ".msh"
    folder = cache_folder("volumes")
    with tempfile.TemporaryDirectory() as room:
        script, made = Path(room) / "mesh.geo", Path(room) / "mesh.msh"
        if folder is not None and (held := kept(folder, name)) is not None:
            with held:
                made.write_bytes(held.read())
            return read(made)
        script.write_text(text.format(file=file.resolve().as_posix(), sharp=SHARP, size=repr(size)))
        said = _run([*_program(), str(script), f"-{dimension}", "-o", str(made), "-nopopup"], progress)
        if not made.is_file():
            raise InputError(f"{path}: Gmsh made no mesh of it: {_complaint(said)}")
        if folder is not None:
            keep(folder, name, lambda file: file.write(made.read_bytes()))
        return read(made)


def solid(told: VolumeFile, progress: Progress | None = None) -> TetMesh | HexMesh:
    """A file's mesh in metres; a surface's, filled. Raises InputError, and Refusal as `meshed` does."""
    if not told.filled:
        mesh: TetMesh | HexMesh = io.read_solid_mesh(told.path)
    else:
        assert told.size is not None
        size = told.size / told.scale
        if told.filler == "gmsh":
            read = partial(io.read_tet_mesh, drop_unreferenced=True)
            mesh = meshed(told.path, size, 3, Silent() if progress is None else progress, read)
        else:
            mesh = _filled(told.path, content_key(Path(told.path).read_bytes().hex()), size)
    return mesh.with_nodes(mesh.nodes * told.scale)


def tetrahedra(told: VolumeFile, progress: Progress | None = None) -> TetMesh:
    """As `solid`, of a body that takes tetrahedra only."""
    mesh = solid(told, progress)
    if not isinstance(mesh, TetMesh):
        raise InputError(f"{told.path}: holds hexahedra, where tetrahedra are needed.")
    return mesh


def segment(told: Segment) -> TetMesh:
    """Tetrahedra of a part of a segmented volume [m]; raises as `fill_part` and `labels.read_labels` do."""
    digest = hashlib.sha256(Path(told.path).read_bytes()).hexdigest()
    return _of_part(told.path, digest, told.label, told.size)


@lru_cache(maxsize=1)
def _labels(path: str, _content: str) -> labels.LabelVolume:
    return labels.read_labels(path)


@lru_cache(maxsize=8)
def _of_part(path: str, content: str, label: int, size: float) -> TetMesh:
    return fill_part(_labels(path, content).part(label), size)


def fill_part(part: labels.LabelledPart, size: float) -> TetMesh:
    """Tetrahedra of edges about `size` [m] of a part; specks that do not hang together with it are left out.

    Raises InputError for what the size does not resolve, and where specks are more than that, and Refusal for
    more elements than the machine holds.
    """
    _require_lattice(part.box, size, part.name)
    mesh = stuffed(part.inside, part.box, size)
    lost = abs(1.0 - mesh.volume / part.volume) if len(mesh.tets) else 1.0
    if lost > MOST_LOST:
        raise InputError(
            f"{part.name}: tetrahedra of size = {size:g} m err by {lost:.0%} of its volume, "
            f"{part.volume:.3g} m3; give a smaller size."
        )
    main = largest_piece(mesh)
    share = main.volume / mesh.volume
    if share < LEAST_WHOLE:
        raise InputError(
            f"{part.name}: falls into pieces, the largest with {share:.0%} of its volume; join them, or give "
            "each a label of its own."
        )
    validate_tets(main.nodes, main.tets, part.name)
    return main


def _require_lattice(box: NDArray[np.float64], size: float, source: str) -> None:
    """Refusal where a lattice of `size` over a box (2, 3) holds more than the machine."""
    # it has two nodes and twelve tetrahedra to a cube
    cubes = float(np.prod(np.ceil(np.ptp(box, axis=0) / size) + 2.0))
    require_stiffness(f"{source}, size {size:g}", round(2.0 * cubes), round(12.0 * cubes), 4)


@lru_cache(maxsize=8)
def _filled(path: str, _content: str, size: float) -> TetMesh:
    """Tetrahedra in the surface of a file, in its unit."""
    return fill(io.read_mended_surface(path)[0], size, path)


def fill(surface: SurfaceMesh, size: float, source: str) -> TetMesh:
    """Tetrahedra of edges about `size` in a closed surface, with nodes on its sharp edges and corners.

    Raises InputError for a surface that crosses itself and for walls that the size does not resolve, and
    Refusal for more elements than the machine holds.
    """
    corners = surface.vertices[surface.used_vertices]
    box = np.array([corners.min(axis=0), corners.max(axis=0)])
    _require_lattice(box, size, source)
    field = exact_field(surface, source=source)
    mesh = stuffed(lambda points: -signed_distance(field, points)[0], box, size)
    lost = 1.0 - mesh.volume / surface.signed_volume if len(mesh.tets) else 1.0
    if lost > MOST_LOST:
        raise InputError(
            f"{source}: tetrahedra of edge {size:g}, in the file's unit, leave out {lost:.0%} of its volume; "
            'give a smaller size, or mesher = "gmsh" for thin walls.'
        )
    mesh = onto_creases(mesh, surface, size)
    try:
        validate_tets(mesh.nodes, mesh.tets, source)
    except InputError as error:
        raise InputError(f"{error} It was filled with edges of {size:g}; give a smaller size.") from None
    return mesh


def _program() -> list[str]:
    """How to call Gmsh."""
    if importlib.util.find_spec("gmsh") is not None:
        return [sys.executable, "-c", GMSH]
    found = shutil.which("gmsh")
    if found is None:
        raise Refusal(
            "this file is meshed by Gmsh, which is not here: pip install 'palpo[mesh]', or your system's "
            'package gmsh; or give a closed surface (.stl, .obj, .ply, .glb) and mesher = "palpo"'
        )
    return [found]


def _run(command: list[str], progress: Progress) -> list[str]:
    """What Gmsh says, line by line; how far it has come is told as it runs."""
    said, begun, end = [], 0.0, 0.1
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as gmsh:
        assert gmsh.stdout is not None
        for line in gmsh.stdout:
            said.append(line.strip())
            if step := _STEP.search(line):
                begun = DIMENSIONS.get(step[1], 0.0)
                end = min((share for share in (*DIMENSIONS.values(), 1.0) if share > begun), default=1.0)
            share = _SHARE.search(line)
            progress.come_to(begun + (end - begun) * (int(share[1]) / 100.0 if share else 0.0))
    return said


def _complaint(said: list[str]) -> str:
    """The first error, or the last words."""
    errors = [line.partition(":")[2].strip() for line in said if line.startswith("Error")]
    return (errors or said or ["it said nothing"])[0 if errors else -1]
