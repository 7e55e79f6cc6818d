"""Every shape serves every body of its kind: closed, and of the volume that geometry says."""

import math

import numpy as np
import pytest

from palpo.app.build.parts import rigid_form
from palpo.app.build.shapes import cells_of, surface_of
from palpo.app.build.soft_parts import soft_part
from palpo.config.load import scene_of

# Volumes [m^3] by closed forms, and by how much the flat facets of round ones may miss them; None: positive.
RIGID = [
    ({"kind": "box", "size": [0.1, 0.2, 0.3]}, 6e-3, 1e-12),
    ({"kind": "block", "size": [0.1, 0.2, 0.3], "divisions": [2, 2, 2]}, 6e-3, 1e-12),
    ({"kind": "plate", "side": 0.2, "thickness": 0.02}, 8e-4, 1e-12),
    ({"kind": "sphere", "radius": 0.1, "divisions": 6}, 4 / 3 * math.pi * 1e-3, 0.05),
    ({"kind": "capsule", "radius": 0.1, "length": 0.2}, math.pi * (2e-3 + 4e-3 / 3), 0.05),
    ({"kind": "ellipsoid", "radii": [0.1, 0.2, 0.3], "divisions": 6}, 4 / 3 * math.pi * 6e-3, 0.05),
    ({"kind": "cylinder", "radius": 0.1, "length": 0.3, "around": 48}, math.pi * 3e-3, 0.01),
    ({"kind": "half-cylinder", "radius": 0.1, "length": 0.2}, math.pi * 1e-3, 0.01),
    ({"kind": "tunnel"}, None, 0.0),
    ({"kind": "bunny"}, None, 0.0),
    ({"kind": "liver", "width": 0.15, "spacing": 0.01}, None, 0.0),
    ({"kind": "plug", "connector": "two-prong"}, None, 0.0),
]
HELD = {
    "name": "held",
    "kind": "rigid",
    "rate": "high",
    "mass": 0.1,
    "geometry": {"kind": "sphere", "radius": 1},
}
CUP = {
    "name": "cup",
    "kind": "cup",
    "geometry": {"kind": "cup"},
    "drive": {"kind": "scripted", "path": [[0] * 4]},
}


def at_two_rates(body):
    tool = {"body": "held"}
    return scene_of({"title": "One", "bodies": [HELD, {"name": "one", **body}], "tool": tool}, "one.toml")


def under_a_cup(body):
    return scene_of({"title": "One", "bodies": [CUP, {"name": "one", **body}]}, "one.toml")


@pytest.mark.parametrize(("shape", "volume", "within"), RIGID, ids=[shape["kind"] for shape, *_ in RIGID])
@pytest.mark.parametrize("scene", [at_two_rates, under_a_cup])
@pytest.mark.parametrize("kind", [{"kind": "mesh"}, {"kind": "rigid", "density": 1000}])
def test_every_shape_is_one_of_rigid_and_of_static_bodies_in_scenes_of_cups_and_of_two_rates(
    shape, volume, within, scene, kind
):
    body = scene(kind | {"geometry": shape}).bodies[1]
    surface = surface_of(body.geometry)
    assert surface.closed
    found = surface.mass_properties(1.0)[0]
    assert found > 0.0 if volume is None else abs(found - volume) <= within * volume
    if body.kind == "rigid" and volume is not None:
        # balls and capsules are round there, and no facets miss anything
        near = 1e-12 if shape["kind"] in ("sphere", "capsule") else within
        density = body.density or body.mass / volume
        assert rigid_form(body)[4].mass == pytest.approx(density * volume, rel=near)


@pytest.mark.parametrize("shape", [{"kind": "ellipsoid", "radii": [0.1, 0.1, 0.2]}, {"kind": "tunnel"}])
def test_shapes_of_soft_bodies_are_those_of_what_cups_are_set_on(shape):
    told = {"kind": "tets", "geometry": shape, "material": "liver"}
    one, other = (scene(told).bodies[1].geometry for scene in (at_two_rates, under_a_cup))
    assert np.array_equal(cells_of(one).nodes, cells_of(other).nodes)


@pytest.mark.parametrize("elements", ["tet4", "tet10", "hex8"])
def test_the_mass_of_a_soft_body_stands_for_its_materials_density(elements):
    shape = {"kind": "block", "size": [0.1, 0.2, 0.3], "divisions": [2, 2, 2]}
    told = {"kind": "tets", "geometry": shape, "material": "liver", "elements": elements, "mass": 0.75}
    scene = at_two_rates(told)
    body = soft_part(scene, scene.bodies[1]).body
    assert body.material.density == pytest.approx(0.75 / 6e-3, rel=1e-12)
