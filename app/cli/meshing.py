"""`palpo mesh FILE`: what a mesh file holds, what was mended, how well it is filled, and a picture of it."""

from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import numpy as np
from PIL import Image
from rich.console import Console

from palpo.app.build.robot_files import LEAST_MASS
from palpo.app.build.robots import HINGE, HeldRobot
from palpo.app.build.volume_mesh import fill, fill_part
from palpo.app.visual.picture import Shapes
from palpo.config.schema.geometry import CLOSED_FILES, ROBOT_FILES, SEGMENTED_FILES, Robot
from palpo.config.schema.view import View
from palpo.config.words import Refusal, in_words
from palpo.physics.exchange.snapshot import SceneState, make_geometry
from palpo.physics.mesh import io, labels
from palpo.physics.mesh.hex import HexMesh
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.mesh.tet import TetMesh
from palpo.render.overlays import Overlays

CELLS = 16
"""Tetrahedra along the longest side of a surface where no size is given."""
PICTURE = 900, 700
"""Width and height of a picture [pixels]."""
COLOURS = (0.75, 0.75, 0.75), (0.8, 0.45, 0.4), (0.45, 0.6, 0.8), (0.5, 0.7, 0.45), (0.85, 0.7, 0.4)
"""Of parts in a picture, in turn."""
Meshes = dict[str, TetMesh | HexMesh | SurfaceMesh]
"""What was filled or read, by name [m]."""
BAD = 0.05
"""Quality of a tetrahedron below which it is worth a word."""


def look_at(
    path: str, size: float | None, scale: float, label: int | None, out: str | None, picture: str | None
) -> None:
    """Print a line for each thing that matters of a mesh; with `out` write it, with `picture` draw it there.

    size: edge of the tetrahedra in a surface [m]. scale: metres per unit of the file. label: part of a
    segmented volume. Raises InputError for a file that cannot be read or filled, RenderUnavailable, and
    Refusal for what cannot be written.
    """
    for option, value in (("--size", size), ("--scale", scale)):
        if value is not None and not (np.isfinite(value) and value > 0.0):
            raise Refusal(f"{option} {value:g}: give a length in metres above 0")
    if out is not None and Path(out).suffix.lower() not in io.VOLUMES:
        raise Refusal(f"--out {out}: write it as {in_words(list(io.VOLUMES))}")
    segmented, robot = path.lower().endswith(SEGMENTED_FILES), path.lower().endswith(ROBOT_FILES)
    if robot and (scale != 1.0 or size is not None or out is not None):
        raise Refusal(f"{path}: a robot is looked at as it is; leave out --scale, --size and --out")
    if label is not None and not segmented:
        raise Refusal(
            f"--label {label}: only a segmented volume has parts, {in_words(list(SEGMENTED_FILES))}"
        )
    if segmented and scale != 1.0:
        raise Refusal(f"--scale {scale:g}: a segmented volume says its unit itself; leave it out")
    console = Console(highlight=False, soft_wrap=True)
    made: Meshes = {}
    if robot:
        lines = _robot(path, made)
    else:
        lines = _parts(path, label, size, made) if segmented else _looks(path, size, scale, made)
    for line in lines:
        console.print(line, markup=False)
    if out is not None:
        if len(made) > 1:
            raise Refusal(f"--out {out}: holds one mesh; choose a part by --label")
        (mesh,) = made.values()
        assert not isinstance(mesh, SurfaceMesh)
        io.write_solid_mesh(out, mesh)
        console.print(f"written to {out}, in metres", markup=False)
    if picture is not None:
        _draw(made, Path(picture))
        console.print(f"drawn to {picture}", markup=False)


def _parts(path: str, label: int | None, size: float | None, made: Meshes) -> Iterator[str]:
    """The parts of a segmented volume, which are filled, all or one."""
    whole = labels.read_labels(path)
    sides = " x ".join(f"{n * step:.4g}" for n, step in zip(whole.labels.shape, whole.steps, strict=True))
    yield f"{' x '.join(map(str, whole.labels.shape))} voxels of {sides} m"
    voxels = whole.parts()
    for number in voxels if label is None else [label]:
        part = whole.part(number)
        name = f" {whole.names[number]}" if whole.names.get(number) else ""
        middle = ", ".join(f"{x:.4g}" for x in part.middle)
        cut = "; cut flat at the volume's border" if whole.at_border(number) else ""
        yield f"label {number}{name}: {voxels[number]:,} voxels, {part.volume:.4g} m3 about ({middle}) m{cut}"
        edge = np.ptp(part.box, axis=0).max() / CELLS if size is None else size
        mesh = fill_part(part, edge)
        kept = mesh.volume / part.volume - 1.0
        yield f"  filled with edges of {edge:.3g} m; its volume is {kept:+.2%} off its voxels'"
        yield from (f"  {line}" for line in _of_mesh(mesh))
        made[name.strip() or f"label {number}"] = mesh


def _robot(path: str, made: Meshes) -> Iterator[str]:
    """Links and joints of a robot as its file leaves it, with the head up."""
    whole = HeldRobot(Robot(path=path))
    for name, number in whole.links.items():
        mass = float(whole.model.body_mass[number])
        yield f"link {name}: {f'{mass:.4g} kg' if mass > LEAST_MASS else 'no mass'}"
    for name, number in whole.joints.items():
        kind, unit = ("hinge", "rad") if whole.model.jnt_type[number] == HINGE else ("slide", "m")
        low, high = whole.model.jnt_range[number]
        ends = f"{low:.4g} to {high:.4g} {unit}" if whole.model.jnt_limited[number] else "without end"
        yield f"{kind} {name}: {ends}"
    surface = whole.surface()
    yield from _of_surface(surface, 1.0)
    x, y, z = surface.vertices.T
    made[Path(path).stem] = surface.with_vertices(np.stack([x, z, -y], axis=1))


def _looks(path: str, size: float | None, scale: float, made: Meshes) -> Iterator[str]:
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
    yield from _of_mesh(mesh)
    made[Path(path).stem] = mesh.with_nodes(mesh.nodes * scale)


def _of_mesh(mesh: TetMesh | HexMesh) -> Iterator[str]:
    kind = "tetrahedra" if isinstance(mesh, TetMesh) else "hexahedra"
    yield f"{len(mesh.nodes):,} nodes, {len(mesh.cells):,} {kind}"
    if isinstance(mesh, TetMesh):
        q = mesh.qualities
        bad = f"; {(q < BAD).sum()} below {BAD:g}: remesh it" if (q < BAD).any() else ""
        yield f"quality, 1 for a regular tetrahedron: {q.min():.2f} at least, {np.median(q):.2f} median{bad}"


def _draw(made: Meshes, path: Path) -> None:
    """A picture of meshes with their edges."""
    from palpo.app.report.draw import camera_of, drawn

    shapes = Shapes()
    for (name, mesh), colour in zip(made.items(), cycle(COLOURS)):
        points, surface = (
            (mesh.vertices, mesh) if isinstance(mesh, SurfaceMesh) else (mesh.nodes, mesh.surface())
        )
        shapes.add(name, points, surface.triangles, colour=colour)
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
