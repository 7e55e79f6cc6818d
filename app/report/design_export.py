"""A scene's connector as STL files, and a scene that reads them: what a CAD program would give."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from palpo.app.cli.design import DesignRequest, scene_of, travel_of
from palpo.app.cli.progress import Progress
from palpo.app.report.connector_joint import write_joint
from palpo.app.systems.snap.connector import connector_of
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.systems.snap.connectors.connector import Connector, Prong

LAYERS = 4
"""Tetrahedra through the thinnest side of a part's box: fewer bend too stiffly."""
APART = 1e-3
"""Share of a part's size by which a box that chooses nodes is wider than they lie."""


def export(name: str, overrides: Sequence[str], folder: Path) -> Path:
    """Plug and prongs in millimetres, and `design.toml`, into a folder that is made; the scene's path.

    Nodes are chosen by boxes around those of the scene: what is clamped, and what may touch.
    """
    spec = scene_of(name, overrides)
    c = connector_of(spec)
    folder.mkdir(parents=True, exist_ok=True)
    write_stl(folder / "plug.stl", c.plug_at(0.0), 1e3)
    tables = []
    for i, prong in enumerate(c.prongs, 1):
        write_stl(folder / f"socket-{i}.stl", prong.mesh.surface().compact(), 1e3)
        tables.append(_prong_table(prong, f"socket-{i}.stl"))
    path = folder / "design.toml"
    path.write_text(_head(c, spec.title) + "\n".join(tables), encoding="utf-8")
    return path


def export_joint(
    name: str, overrides: Sequence[str], back: float | None, folder: Path, progress: Progress
) -> Path:
    """The connector's force over travel as a joint for other simulators; the path of its law.

    back [m]: how far the latched plug is pulled, a third of the stroke if not told; raises as `travel_of`.
    """
    spec = scene_of(name, overrides)
    with progress.stage("meshes, distance, force over travel"):
        travel = travel_of(spec, DesignRequest(name, tuple(overrides), back=back), progress)
    write_joint(folder, spec.title, connector_of(spec), travel)
    return folder / "connector.json"


def write_stl(path: Path, surface: SurfaceMesh, scale: float) -> None:
    """A binary STL file, lengths times `scale`."""
    facets = np.zeros(
        len(surface.triangles), [("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")]
    )
    facets["normal"], facets["corners"] = (
        surface.triangle_normals,
        scale * surface.vertices[surface.triangles],
    )
    with path.open("wb") as file:
        file.write(b"palpo".ljust(80, b"\0") + np.uint32(len(facets)).tobytes())
        file.write(facets.tobytes())


def _head(c: Connector, title: str) -> str:
    m = c.material
    held = float(c.push @ c.admittance.stiffness[:3, :3] @ c.push)
    return f"""title = "{title}, from files"
description = "{title}, from files."

[material]
youngs_modulus = {m.youngs_modulus!r}
poisson_ratio = {m.poisson_ratio!r}
density = {m.density!r}

[friction]
default = {c.friction!r}

[admittance]
stiffness = {held:.6g}

[model]
segments = 1

[connector]
kind = "files"
push = {_list(c.push)}
stroke = {c.stroke:.9g}

[connector.plug]
kind = "file"
path = "plug.stl"
scale = 0.001

"""


def _prong_table(prong: Prong, file: str) -> str:
    size = float(np.ptp(prong.mesh.nodes, axis=0).min()) / LAYERS
    return f"""[[connector.prongs]]
kind = "file"
path = "{file}"
scale = 0.001
size = {size:.3g}
clamped = [{_box(prong, prong.clamped)}]
contact = [{_box(prong, prong.contact)}]
"""


def _box(prong: Prong, chosen: NDArray[np.int32]) -> str:
    """A region around nodes."""
    nodes = prong.mesh.nodes
    wider = APART * float(np.ptp(nodes, axis=0).max())
    low, high = nodes[chosen].min(axis=0) - wider, nodes[chosen].max(axis=0) + wider
    return f"{{ box = [{_list(low)}, {_list(high)}] }}"


def _list(values: NDArray[np.float64]) -> str:
    return "[" + ", ".join(f"{value + 0.0:.6g}" for value in values) + "]"
