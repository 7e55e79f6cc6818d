"""Parts of soft bodies of other materials: which elements they are, and where they are seen to end."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from palpo.config.schema.body import Soft
from palpo.physics.exchange.snapshot import Drawable
from palpo.physics.fem.elements import SolidMesh
from palpo.physics.mesh.hex import HexMesh
from palpo.physics.mesh.regions import nodes_in_box, nodes_in_sphere
from palpo.physics.numerics.errors import InputError


def parts_of(body: Soft, mesh: SolidMesh) -> NDArray[np.intp]:
    """Which of the body's `materials` each element is of, (m,); -1 for none.

    Raises InputError for one that holds no element.
    """
    key = f"bodies.{body.name}.materials"
    corners = mesh.cells[:, : 8 if isinstance(mesh, HexMesh) else 4]
    centres, parts = mesh.nodes[corners].mean(axis=1), np.full(len(corners), -1, np.intp)
    for i, told in enumerate(body.materials):
        if told.box is not None:
            inside, what = nodes_in_box(centres, *told.box), "box"
        elif told.sphere is not None:
            inside, what = nodes_in_sphere(centres, told.sphere.centre, told.sphere.radius), "sphere"
        elif mesh.labels is None:
            raise InputError(f"{key}.{i}.label = {told.label}: the file of {body.name} has no labels.")
        else:
            inside, what = np.flatnonzero(mesh.labels == told.label).astype(np.int32), "label"
        if not len(inside):
            labels = () if mesh.labels is None else np.unique(mesh.labels).tolist()
            known = f"; its labels are {labels}" if what == "label" else ""
            raise InputError(f"{key}.{i}.{what} holds the centre of no element of {body.name}{known}.")
        parts[inside] = i
    return parts


def borders(whole: Drawable, body: Soft, mesh: SolidMesh) -> list[Drawable]:
    """Where parts of a body that have a colour end inside of it: seen dimly through the rest."""
    if not body.materials:
        return []
    parts, sides = parts_of(body, mesh), np.sort(whole.triangles, axis=1).tolist()
    outside, found = set(map(tuple, sides)), []
    for number, part in enumerate(body.materials):
        if part.colour is None:
            continue
        border = mesh.border_of(np.flatnonzero(parts == number))
        inside = [tuple(side) not in outside for side in np.sort(border, axis=1).tolist()]
        name, nowhere = f"{whole.name}, part {number + 1}", np.zeros(0, np.int32)
        drawn = replace(whole, name=name, triangles=border[inside], colour=part.colour)
        found.append(replace(drawn, pierces=True, fixed=nowhere))
    return [one for one in found if len(one.triangles)]
