"""The connector of a snap scene: generated, or a user's pair of meshes, and how its plug is held."""

import math
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np

from palpo.app.build.parts import chosen_nodes, key_of
from palpo.app.build.volume_mesh import meshed, tetrahedra
from palpo.app.cli.progress import Progress, Silent
from palpo.config.schema.connector import ConnectorSpec, FilesConnector, ProngFile
from palpo.config.schema.snap import SnapScene
from palpo.physics.fem.material import Material
from palpo.physics.mesh import io
from palpo.physics.mesh.grown import grown
from palpo.physics.mesh.quadratic import with_chosen_middles, with_middles
from palpo.physics.numerics.errors import InputError
from palpo.physics.systems.snap.connectors.connector import (
    RESPONSE,
    Admittance,
    Connector,
    Prong,
    make_connector,
    make_prong,
)
from palpo.physics.systems.snap.connectors.registry import generate


@lru_cache(maxsize=4)
def _generated(spec: ConnectorSpec) -> Connector:
    dimensions = spec.model_dump(exclude={"kind", "mesh"}, exclude_none=True)
    return generate(spec.kind, spec.mesh, **dimensions)  # type: ignore[union-attr]


def connector_of(spec: SnapScene, progress: Progress | None = None) -> Connector:
    """Socket and plug with the scene's material, friction and admittance; raises InputError, Refusal."""
    c = spec.connector
    made = _from_files(spec, c, progress or Silent()) if isinstance(c, FilesConnector) else _generated(c)
    if spec.contact.meridians is not None and any(prong.sectors == 1 for prong in made.prongs):
        key = key_of(spec, "contact", "meridians")
        raise InputError(f"{key}: the socket is no ring that repeats about y; leave the key out")
    if spec.material is not None:
        m = spec.material
        made = replace(made, material=Material(m.youngs_modulus, m.poisson_ratio, m.density))
    return replace(made, friction=spec.friction.default, admittance=admittance_of(spec, made))


def gains_of(spec: SnapScene) -> tuple[float, float, float]:
    """M_ad [kg], D_ad [N s/m] and K_ad [N/m]; what the scene leaves out is as `make_connector` has it."""
    a = spec.admittance
    stiffness = _generated(spec.connector).admittance.stiffness[0] if a.stiffness is None else a.stiffness
    mass = stiffness / RESPONSE**2 if a.mass is None else a.mass
    damping = 2.0 * math.sqrt(stiffness * mass) if a.damping is None else a.damping
    return float(mass), float(damping), float(stiffness)


def admittance_of(spec: SnapScene, connector: Connector) -> Admittance:
    """M_ad, D_ad and K_ad as matrices (6, 6).

    Against turning, they are times the square of a radius, by default the plug's own; a rail multiplies all
    of them but those along the push.
    """
    mass, _, inertia = connector.plug.mass_properties(1.0)
    radius, push = spec.admittance.gyration, connector.push
    along, rail = np.outer(push, push), spec.admittance.rail or 1.0
    shape = np.zeros((6, 6))
    shape[:3, :3] = along + rail * (np.eye(3) - along)
    shape[3:, 3:] = rail * np.eye(3) * (np.trace(inertia) / (3.0 * mass) if radius is None else radius**2)
    return Admittance(*(gain * shape for gain in gains_of(spec)))


def _from_files(spec: SnapScene, c: FilesConnector, progress: Progress) -> Connector:
    """A user's pair; the regions choose nodes, and triangles between them."""
    prongs = [_prong(spec, c.prongs[i], i, progress) for i in range(len(c.prongs))]
    read = partial(io.read_surface_mesh, drop_unreferenced=c.plug.drawn)
    if c.plug.size is None:
        plug = read(c.plug.path)
    else:
        plug = meshed(c.plug.path, c.plug.size / c.plug.scale, 2, progress, read)
    plug = grown(plug.with_vertices(plug.vertices * c.plug.scale), c.plug.grow)
    assert spec.material is not None and spec.admittance.stiffness is not None
    m = spec.material
    material = Material(m.youngs_modulus, m.poisson_ratio, m.density)
    held = spec.admittance.stiffness
    return make_connector(prongs, plug, material, spec.friction.default, c.push, c.stroke, held)


def _prong(spec: SnapScene, told: ProngFile, i: int, progress: Progress) -> Prong:
    key, name = key_of(spec, "connector", "prongs", i), f"prong {i}"
    mesh = tetrahedra(told, progress)
    clamped = chosen_nodes(f"{key}.clamped", name, told.clamped, mesh.nodes, "clamps")
    touched = chosen_nodes(f"{key}.contact", name, told.contact, mesh.nodes, "chooses")
    body = None
    if told.order == 2:
        n = len(mesh.nodes)
        mesh, body, ends = with_middles(mesh)
        clamped, touched = (with_chosen_middles(chosen, ends, n) for chosen in (clamped, touched))
    triangles = mesh.surface(name).triangles
    between = triangles[np.isin(triangles, np.setdiff1d(touched, clamped)).all(axis=1)]
    if not len(between):
        raise InputError(
            f"{key}.contact: no free triangle of the boundary lies between these nodes; widen it"
        )
    return make_prong(mesh, clamped, between, f"{key}: {told.path}", body)
