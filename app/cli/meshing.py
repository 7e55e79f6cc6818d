"""`palpo mesh FILE`: what a mesh file holds, what was mended, how well it is filled, and a picture of it."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image
from rich.console import Console

from palpo.app.build.volume_mesh import fill
from palpo.app.visual.picture import Shapes
from palpo.config.schema.geometry import CLOSED_FILES
from palpo.config.schema.view import View
from palpo.config.words import Refusal, in_words
from palpo.physics.exchange.snapshot import SceneState, make_geometry
from palpo.physics.mesh import io
from palpo.physics.mesh.hex import HexMesh
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.mesh.tet import TetMesh
from palpo.render.overlays import Overlays

CELLS = 16
"""Tetrahedra along the longest side of a surface where no size is given."""
PICTURE = 900, 700
"""Width and height of a picture [pixels]."""
BAD = 0.05
"""Quality of a tetrahedron below which it is worth a word."""


def look_at(path: str, size: float | None, scale: float, out: str | None, picture: str | None) -> None:
    """Print a line for each thing that matters of a mesh; with `out` write it, with `picture` draw it there.

    size: edge of the tetrahedra in a surface [m]. scale: metres per unit of the file. Raises InputError for
    a file that cannot be read or filled, RenderUnavailable, and Refusal for what cannot be written.
    """
    for option, value in (("--size", size), ("--scale", scale)):
        if value is not None and not (np.isfinite(value) and value > 0.0):
            raise Refusal(f"{option} {value:g}: give a length in metres above 0")
    if out is not None and Path(out).suffix.lower() not in io.VOLUMES:
        raise Refusal(f"--out {out}: write it as {in_words(list(io.VOLUMES))}")
    console = Console(highlight=False, soft_wrap=True)
    for line in _looks(path, size, scale, out, picture):
        console.print(line, markup=False)


def _looks(
    path: str, size: float | None, scale: float, out: str | None, picture: str | None
) -> Iterator[str]:
    mesh: TetMesh | HexMesh
    if Path(path).suffix.lower() in CLOSED_FILES:
        surface, mended = io.read_mended_surface(path)
        yield from _of_surface(surface, scale)
        yield from (f"mended: {one}" for one in mended)
        edge = np.ptp(surface.vertices, axis=0).max() / CELLS if size is None else size / scale
        mesh = fill(surface, edge, path)
        kept = mesh.volume / surface.signed_volume - 1.0
        yield f"filled with edges of {edge * scale:.3g} m; its volume is {kept:+.2%} off the surface's"
    else:
        mesh = io.read_solid_mesh(path)
        yield from _of_surface(mesh.surface().compact(), scale)
    kind = "tetrahedra" if isinstance(mesh, TetMesh) else "hexahedra"
    yield f"{len(mesh.nodes):,} nodes, {len(mesh.cells):,} {kind}"
    if isinstance(mesh, TetMesh):
        q = mesh.qualities
        bad = f"; {(q < BAD).sum()} below {BAD:g}: remesh it" if (q < BAD).any() else ""
        yield f"quality, 1 for a regular tetrahedron: {q.min():.2f} at least, {np.median(q):.2f} median{bad}"
    mesh = mesh.with_nodes(mesh.nodes * scale)
    if out is not None:
        io.write_solid_mesh(out, mesh)
        yield f"written to {out}, in metres"
    if picture is not None:
        _draw(mesh, Path(picture))
        yield f"drawn to {picture}"


def _draw(mesh: TetMesh | HexMesh, path: Path) -> None:
    """A picture of the mesh with its edges."""
    from palpo.app.report.draw import camera_of, drawn

    shapes = Shapes()
    shapes.add(path.stem, mesh.nodes, mesh.surface().triangles)
    geometry, state = make_geometry(shapes.drawables, shapes.vertices), SceneState(shapes.vertices)
    camera = camera_of(geometry, [state], View(), PICTURE[0] / PICTURE[1])
    overlays = Overlays(wireframe=True, labels=False, shadow=False)
    (seen,) = drawn(geometry, [state], camera, PICTURE, overlays)
    try:
        Image.fromarray(seen).save(path)
    except (OSError, ValueError) as error:
        raise Refusal(f"--picture {path}: cannot be written ({error})") from None


def _of_surface(surface: SurfaceMesh, scale: float) -> Iterator[str]:
    size = " x ".join(f"{side:.4g}" for side in scale * np.ptp(surface.vertices, axis=0))
    volume = scale**3 * surface.signed_volume
    yield f"{len(surface.triangles):,} triangles around {size} m, {volume:.4g} m3"
