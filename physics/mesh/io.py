"""Reading meshes: Gmsh 1, 2 and 4, VTK, VTU, OBJ, STL, PLY and glTF, in the units of the file.

Whatever is wrong with a file becomes one InputError that names it. Nodes and elements in messages are counted
from 0 in the order of the file.
"""

import io
import itertools
import re
import warnings
from collections import defaultdict
from contextlib import redirect_stderr, redirect_stdout
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.physics.mesh import checks
from palpo.physics.mesh.hex import HexMesh, orient_hexes, validate_hexes
from palpo.physics.mesh.mending import mended
from palpo.physics.mesh.quadratic import QuadraticTetMesh
from palpo.physics.mesh.scans import SCANS, read_scan
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.mesh.tet import TetMesh, orient_tets, validate_tets
from palpo.physics.numerics.errors import InputError

Cells = dict[str, NDArray[Any]]
"""By kind of cell ("tetra", "triangle", "quad", ...): nodes, shape (m, nodes per cell), or labels, (m,)."""

LABELS = ("gmsh:physical", "medit:ref", "label", "labels", "material", "region")
"""Names of data of cells that are labels, of which the first that a file has counts: Gmsh's groups first."""

FORMATS = {
    ".msh": "Gmsh", ".vtk": "VTK", ".vtu": "VTU", ".obj": "OBJ", ".stl": "STL", ".ply": "PLY", ".glb": "glTF",
    ".gltf": "glTF",
}  # fmt: skip

VOLUMES = {".vtu": "vtu", ".vtk": "vtk", ".msh": "gmsh22"}
"""Endings of the names of files that hold tetrahedra or hexahedra, and how they are written."""

SOLIDS = ("tetra", "hexahedron", "wedge", "pyramid", "polyhedron")
"""Beginnings of the names of kinds that fill space."""

GMSH1_KINDS = {
    2: "triangle",
    3: "quad",
    4: "tetra",
    5: "hexahedron",
    6: "wedge",
    7: "pyramid",
    9: "triangle6",
    11: "tetra10",
}
"""Kinds by their number in Gmsh 1; lines and points carry nothing that is simulated."""


def read_tet_mesh(path: str | PathLike[str], drop_unreferenced: bool = False) -> TetMesh:
    """Tetrahedral mesh of a file, in the file's units, every element oriented to positive volume.

    Node order within an element is a convention, so negative elements are turned; flat ones are refused, with
    all else that `validate_tets` refuses. With `drop_unreferenced` nodes of no element (the centres of arcs
    that Gmsh writes, for example) are left out instead of refused. Raises InputError.
    """
    points, cells, labels = _load(path)
    return _tets(points, cells, labels, drop_unreferenced, str(path))


def read_solid_mesh(path: str | PathLike[str], drop_unreferenced: bool = False) -> TetMesh | HexMesh:
    """Mesh of tetrahedra or of eight-node hexahedra, whichever the file holds; see `read_tet_mesh`.

    Raises InputError, also for a file that holds both.
    """
    points, cells, labels = _load(path)
    if "hexahedron" in cells:
        return _hexes(points, cells, labels, drop_unreferenced, str(path))
    return _tets(points, cells, labels, drop_unreferenced, str(path))


def read_surface_mesh(path: str | PathLike[str], drop_unreferenced: bool = False) -> SurfaceMesh:
    """Triangle surface of a file, in the file's units; of a file of tetrahedra or hexahedra, its boundary.

    Quads and polygons are cut into triangles, equal vertices of an STL file are merged, and a closed surface
    that faces inward is turned. Open surfaces are returned as they are: ask `require_volume` where a volume
    is needed. Raises InputError for what `SurfaceMesh.from_triangles` refuses and, unless
    `drop_unreferenced`, for vertices of no triangle.
    """
    points, cells, labels = _load(path)
    source = str(path)
    if "tetra" in cells:
        return _tets(points, cells, labels, drop_unreferenced, source).surface(source).compact()
    if "hexahedron" in cells:
        return _hexes(points, cells, labels, drop_unreferenced, source).surface(source).compact()
    surface = SurfaceMesh.from_triangles(points, _triangles(cells, source), source)
    if drop_unreferenced:
        surface = surface.compact()
    else:
        checks.require_referenced(len(surface.vertices), surface.triangles, "triangle", source)
    return surface.flipped() if surface.closed and surface.signed_volume < 0.0 else surface


def read_mended_surface(path: str | PathLike[str]) -> tuple[SurfaceMesh, list[str]]:
    """Closed triangle surface of a file, mended where that is safe, and what was mended, in words.

    Raises InputError for what encloses no volume after it.
    """
    points, cells, _ = _load(path)
    source = str(path)
    nodes = checks.as_points(points, source)
    triangles = checks.as_cells(_triangles(cells, source), 3, len(nodes), "triangle", source)
    surface, said = mended(nodes, triangles.astype(np.int64), source)
    surface.require_volume(source)
    return surface, said


def write_solid_mesh(path: str | PathLike[str], mesh: TetMesh | HexMesh) -> None:
    """A mesh as VTU, VTK or Gmsh, by the ending of the name; raises InputError where it cannot be written."""
    try:
        meshio_of(mesh, mesh.nodes).write(path, VOLUMES[Path(path).suffix.lower()])
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error}).") from error


def meshio_of(
    mesh: TetMesh | HexMesh | QuadraticTetMesh | None,
    points: NDArray[np.float64],
    triangles: NDArray[np.integer] | None = None,
    data: dict[str, NDArray[np.float64]] | None = None,
) -> Any:
    """A `meshio.Mesh`: a solid's elements, or without one triangles (m, 3), over points (n, 3) [m].

    data: fields of the points by name, (n,) or (n, k).
    """
    import meshio

    kinds = {TetMesh: "tetra", HexMesh: "hexahedron", QuadraticTetMesh: "tetra10"}
    cells = ("triangle", triangles) if mesh is None else (kinds[type(mesh)], mesh.cells)
    labels = None if mesh is None or mesh.labels is None else {LABELS[0]: [mesh.labels]}
    return meshio.Mesh(points, [cells], point_data=data, cell_data=labels)


def _elements(
    points: NDArray[Any], cells: NDArray[Any], corners: int, drop_unreferenced: bool, source: str
) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Nodes and elements (m, corners) of a file's points and of its cells of one kind, checked."""
    nodes = checks.as_points(points, source)
    elements = checks.as_cells(cells, corners, len(nodes), "element", source)
    return checks.drop_unreferenced(nodes, elements) if drop_unreferenced else (nodes, elements)


def _hexes(
    points: NDArray[Any], cells: Cells, labels: Cells, drop_unreferenced: bool, source: str
) -> HexMesh:
    strange = [kind for kind in cells if kind.startswith(SOLIDS) and kind != "hexahedron"]
    if strange:
        raise InputError(
            f"{source}: holds {strange[0]} elements beside hexahedra of eight nodes; a body takes one kind."
        )
    nodes, hexes = _elements(points, cells["hexahedron"], 8, drop_unreferenced, source)
    hexes = orient_hexes(nodes, hexes)
    validate_hexes(nodes, hexes, source)
    return HexMesh(nodes, hexes, labels.get("hexahedron"))


def _tets(points: NDArray[Any], cells: Cells, labels: Cells, drop_unreferenced: bool, source: str) -> TetMesh:
    strange = [kind for kind in cells if kind.startswith(SOLIDS) and kind != "tetra"]
    if strange:
        raise InputError(
            f"{source}: holds {strange[0]} elements, but a soft body takes tetrahedra of four nodes only."
        )
    if "tetra" not in cells:
        raise InputError(
            f"{source}: has no tetrahedra; give its surface as .stl, .obj, .ply or .glb, with a size."
        )
    nodes, tets = _elements(points, cells["tetra"], 4, drop_unreferenced, source)
    tets = orient_tets(nodes, tets)
    validate_tets(nodes, tets, source)
    return TetMesh(nodes, tets, labels=labels.get("tetra"))


def _triangles(cells: Cells, source: str) -> NDArray[Any]:
    strange = [kind for kind in cells if kind.startswith(("triangle", "quad", "polygon"))]
    strange = [kind for kind in strange if kind not in ("triangle", "quad")]
    if strange:
        raise InputError(
            f"{source}: holds {strange[0]} faces, but a surface takes flat triangles and quads only."
        )
    parts = [cells["triangle"]] if "triangle" in cells else []
    if "quad" in cells:
        parts.append(cells["quad"][:, [[0, 1, 2], [0, 2, 3]]].reshape(-1, 3))
    if not parts:
        raise InputError(f"{source}: has neither solid elements nor triangles, so it has no surface.")
    return np.concatenate(parts)


def _load(path: str | PathLike[str]) -> tuple[NDArray[Any], Cells, Cells]:
    """Points of a file, its cells, and their labels."""
    path, labels = Path(path), Cells()
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise InputError(f"{path}: unknown mesh format {suffix!r}, expected one of {', '.join(FORMATS)}.")
    if not path.is_file():
        raise InputError(f"{path}: no such mesh file.")
    try:
        if suffix == ".obj":
            points, cells = _read_obj(path)
        elif suffix in SCANS:
            points, cells = read_scan(path)
        elif suffix == ".msh" and _is_gmsh1(path):
            points, cells, labels = _read_gmsh1(path)
        else:
            points, cells, labels = _read_with_meshio(path, suffix)
    except OSError as error:
        raise InputError(f"{path}: the mesh file cannot be read ({error.strerror or error}).") from error
    # The readers fail on broken files in every way there is, exits of the process among them.
    except (Exception, SystemExit) as error:
        reason = " ".join(str(error).split())[:120].rstrip(".") or type(error).__name__
        raise InputError(
            f"{path}: not a complete {FORMATS[suffix]} file of a supported kind ({reason})."
        ) from error
    if len(points) == 0:
        raise InputError(f"{path}: the mesh file holds no nodes.")
    return points, {kind: block for kind, block in cells.items() if len(block)}, labels


def _read_with_meshio(path: Path, suffix: str) -> tuple[NDArray[Any], Cells, Cells]:
    from meshio import gmsh, stl, vtk, vtu  # late: a tenth of a second that generated scenes need not pay

    if suffix == ".stl":
        _require_complete_stl(path)
    # The format's own reader raises where meshio.read prints and exits.
    reader = {".msh": gmsh.read, ".vtk": vtk.read, ".vtu": vtu.read, ".stl": stl.read}[suffix]
    # It prints its complaints, where they would blur the one sentence that the user gets.
    printed = io.StringIO()
    with warnings.catch_warnings(), redirect_stdout(printed), redirect_stderr(printed):
        warnings.simplefilter("ignore")
        mesh = reader(str(path))
    complaint = " ".join(printed.getvalue().split())
    # After these two it goes on with a part of the mesh.
    if "cannot handle" in complaint or "not closed" in complaint:
        raise ValueError(complaint.removeprefix("Warning: "))
    told = mesh.cell_data_dict
    labels = next((told[name] for name in LABELS if name in told), Cells())
    return mesh.points, mesh.cells_dict, {kind: _whole(one) for kind, one in labels.items()}


def _whole(labels: NDArray[Any]) -> NDArray[np.int64]:
    """Labels (m,) as whole numbers; ValueError for what are none."""
    numbers = labels.reshape(-1).astype(np.int64)
    if len(numbers) != len(labels) or (numbers != labels.reshape(-1)).any():
        raise ValueError("labels of cells are no whole numbers")
    return numbers


def _require_complete_stl(path: Path) -> None:
    """ValueError for an STL file cut short; a text file cut between facets would pass for an open surface."""
    data = path.read_bytes()
    binary = len(data) >= 84 and len(data) == 84 + 50 * int.from_bytes(data[80:84], "little")
    if not binary and not re.search(rb"^\s*endsolid[^\n]*\s*\Z", data, re.MULTILINE):
        raise ValueError("neither a binary STL of the length it announces nor a text that ends with endsolid")


def _read_obj(path: Path) -> tuple[NDArray[Any], Cells]:
    """Vertices and faces, polygons cut into fans; negative indices count back from the last vertex."""
    vertices: list[list[float]] = []
    triangles: list[tuple[int, int, int]] = []
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), start=1):
        key, *fields = line.split() or [""]
        try:
            if key == "v":
                x, y, z = fields[:3]
                vertices.append([float(x), float(y), float(z)])
            elif key == "f":
                named = [int(field.split("/")[0]) for field in fields]
                first, *others = [i - 1 if i > 0 else len(vertices) + i for i in named]
                if 0 in named or len(others) < 2:
                    raise ValueError
                triangles.extend((first, *pair) for pair in itertools.pairwise(others))
        except ValueError:
            raise ValueError(f"line {number} is {line.strip()[:40]!r}") from None
    return np.array(vertices), {"triangle": np.array(triangles, dtype=np.int64)}


def _is_gmsh1(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(64).lstrip().startswith(b"$NOD")


def _read_gmsh1(path: Path) -> tuple[NDArray[Any], Cells, Cells]:
    """The first Gmsh format: $NOD (id x y z) and $ELM (id kind physical entity count nodes)."""
    text = path.read_text()
    node_rows = _gmsh1_section(text, "NOD")
    table = np.array([[float(field) for field in row] for row in node_rows]).reshape(-1, 4)
    ids = table[:, 0].astype(np.int64)
    if len(np.unique(ids)) < len(ids):
        raise ValueError("two nodes have the same number")
    by_kind, entities = defaultdict(list), defaultdict(list)
    for row in _gmsh1_section(text, "ELM"):
        kind, entity, count, *nodes = (int(row[i]) for i in (1, 2, *range(4, len(row))))
        if len(nodes) != count:
            raise ValueError(f"element {row[0]} announces {count} nodes and lists {len(nodes)}")
        if kind in GMSH1_KINDS:
            by_kind[GMSH1_KINDS[kind]].append(nodes)
            entities[GMSH1_KINDS[kind]].append(entity)
    cells = {kind: _renumber(ids, np.array(rows)) for kind, rows in by_kind.items()}
    return table[:, 1:], cells, {kind: np.array(labels) for kind, labels in entities.items()}


def _gmsh1_section(text: str, name: str) -> list[list[str]]:
    """The fields of each row of a section, which must be complete."""
    found = re.search(rf"^\${name}\s+(\d+)\s*\n(.*?)^\$END{name}", text, re.MULTILINE | re.DOTALL)
    if not found:
        raise ValueError(f"no complete section ${name} ... $END{name}")
    rows = [line.split() for line in found[2].splitlines() if line.strip()]
    if len(rows) != int(found[1]):
        raise ValueError(f"section ${name} announces {found[1]} rows and holds {len(rows)}")
    return rows


def _renumber(ids: NDArray[np.int64], cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """Positions in `ids` of the node numbers that the cells use."""
    order = np.argsort(ids)
    position = np.minimum(np.searchsorted(ids[order], cells), len(ids) - 1)
    missing = cells[ids[order][position] != cells]
    if missing.size:
        raise ValueError(f"an element uses node {missing[0]}, which the file does not define")
    return order[position]
