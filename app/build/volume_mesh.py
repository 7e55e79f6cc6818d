"""Tetrahedra in a closed STL surface or a STEP solid, and triangles on a STEP solid, by Gmsh.

Gmsh (C. Geuzaine, J.-F. Remacle, Gmsh: a 3-D finite element mesh generator with built-in pre- and
post-processing facilities, International Journal for Numerical Methods in Engineering 79, 2009) is under the
GPL: no part of Palpo and never loaded by it. It runs as a program of its own, which reads a file and writes
another, and only for files that need it.
"""

import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from palpo.app.cli.progress import Progress, Silent
from palpo.config.schema.geometry import FilledFile
from palpo.config.words import Refusal
from palpo.physics.bodies.io import content_key
from palpo.physics.mesh import io
from palpo.physics.mesh.tet import TetMesh
from palpo.physics.numerics.cache import cache_folder
from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.own import keep, kept

Read = TypeVar("Read")

SHARP = 40.0
"""Triangles of an STL file that meet at more are of different faces, whose edge is kept [degrees]."""
DIMENSIONS = {"1D": 0.0, "2D": 0.1, "3D": 0.4}
"""Share of the work that is done when Gmsh begins with edges, faces, the inside."""
GMSH = "import sys, gmsh; gmsh.initialize(sys.argv, run=True); gmsh.finalize()"
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


def tetrahedra(told: FilledFile, progress: Progress | None = None) -> TetMesh:
    """A file's mesh in metres, filled by Gmsh where the file has a boundary alone; raises as `meshed`."""
    read = partial(io.read_tet_mesh, drop_unreferenced=told.filled)
    if told.size is None:
        mesh = read(told.path)
    else:
        size = told.size / told.scale
        mesh = meshed(told.path, size, 3, Silent() if progress is None else progress, read)
    return mesh.with_nodes(mesh.nodes * told.scale)


def _program() -> list[str]:
    """How to call Gmsh."""
    if importlib.util.find_spec("gmsh") is not None:
        return [sys.executable, "-c", GMSH]
    found = shutil.which("gmsh")
    if found is None:
        raise Refusal(
            "STL and STEP files are meshed by Gmsh, which is not here: pip install 'palpo[mesh]', or your "
            "system's package gmsh; or give tetrahedra (.msh, .vtk, .vtu)"
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
