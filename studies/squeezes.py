"""Two-sided squeezes: a wedge-shaped plug between two prongs of a socket, over one step of passive midpoint.

Each prong is a clamped block of tetrahedra, whole or reduced to its lowest modes; the plug is rigid, under
admittance control, and couples both. Prongs are sprung apart and come back upon the plug as it is pushed. A
wedge of half angle phi locks at mu = tan phi: friction then holds whatever pushes.
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray

from palpo.physics.contact.problem import ContactProblem
from palpo.physics.fem.material import Material
from palpo.physics.fem.rest_stiffness import node_volumes, rest_stiffness
from palpo.physics.mesh.generate import block
from palpo.studies.reference.midpoint_problem import contact_problem

Array = NDArray[np.float64]

STEP = 1e-3
SIZE, DIVISIONS = (0.005, 0.024, 0.010), (2, 6, 2)
"""A prong: thickness, height and width [m] along x, y, z, clamped at its foot, and its cells."""
MATERIAL = Material(164.76e6, 0.35, 1150.0)
PATCH = (0.015, 0.023)
"""Height of the contacts above the foot [m]."""
SPRUNG = 1e-3
"""How far the prongs are bent apart at the contacts [m]."""
HALF_WIDTH = 0.006
"""Of the plug at the contacts [m]."""

PLUG_MASS = np.array([0.5, 0.5, 0.5, 5e-5, 5e-5, 5e-5])
PLUG_DAMPING = np.array([20.0, 20.0, 20.0, 2e-3, 2e-3, 2e-3])
PLUG_STIFFNESS = np.array([2e4, 2e4, 2e4, 2.0, 2.0, 2.0])
"""Admittance M_ad, D_ad, K_ad of the plug: kg, N s/m, N/m and the same of rotations."""
SPEED, PUSH = 0.05, 20.0
"""Of the plug downward [m/s], and the force on it [N]."""


@dataclass(frozen=True)
class Squeeze:
    """One of the problems."""

    name: str
    half_angle: float
    """phi of the wedge [degrees]."""
    mu: float
    grid: tuple[int, int]
    """Contacts of each prong along its height and its width."""
    modes: int | None = None
    """The prongs' lowest modes that are kept; all freedoms if None."""


SQUEEZES = (
    Squeeze("wedge_loose", 60.0, 0.1, (2, 2)),
    Squeeze("wedge_paper", 45.0, 0.163, (3, 2)),
    Squeeze("wedge_reduced", 45.0, 0.3, (4, 3), 6),
    Squeeze("wedge_gripped", 20.0, 0.34, (3, 3)),
    Squeeze("wedge_jamming", 40.0, 0.8, (4, 3), 6),
)
"""From loose to nearly jammed; the reduced ones have 72 rows and 18 freedoms."""


def squeeze_problem(case: Squeeze) -> ContactProblem:
    """One step, u [m] and r [N]; body 1 is the socket."""
    mobility = 1.0 / (2.0 * PLUG_MASS / STEP + PLUG_DAMPING + 0.5 * STEP * PLUG_STIFFNESS)
    twist, wrench = np.zeros(6), np.zeros(6)
    twist[1], wrench[1] = -SPEED, -PUSH
    plug = mobility * (wrench + 2.0 * PLUG_MASS / STEP * twist)
    sides = [_prong(case, side) for side in (1.0, -1.0)]
    jacobian = np.concatenate([rows for rows, _, _ in sides])
    c = la.block_diag(*(compliance for _, compliance, _ in sides)) + jacobian * mobility @ jacobian.T
    middle = np.concatenate([middle for _, _, middle in sides]) - jacobian @ plug
    n = len(middle) // 3
    gap = np.random.default_rng(0).uniform(-2e-5, 1e-5, n)
    return contact_problem(0.5 * (c + c.T), middle, -jacobian @ twist, gap, np.full(n, case.mu), STEP)


def _prong(case: Squeeze, side: float) -> tuple[Array, Array, Array]:
    """Rows of the plug's Jacobian (3 p, 6), and of one prong C (3 p, 3 p) and vh without contact (3 p,).

    The right prong is at side 1.
    """
    mesh = block(SIZE, DIVISIONS)
    free = np.flatnonzero(mesh.nodes[:, 1] > -0.49 * SIZE[1])
    dofs = (3 * free[:, None] + np.arange(3)).ravel()
    k = rest_stiffness(mesh, MATERIAL)[dofs][:, dofs].toarray()
    m = np.repeat(MATERIAL.density * node_volumes(mesh)[free], 3)

    # contacts lie on the face that looks at the plug, bilinear between its nodes
    y = np.linspace(*PATCH, case.grid[0]) - 0.5 * SIZE[1]
    z = np.linspace(-0.4, 0.4, case.grid[1]) * SIZE[2]
    y, z = (values.ravel() for values in np.meshgrid(y, z, indexing="ij"))
    nodes = mesh.nodes[free]
    inner = side * nodes[:, 0] < -0.49 * SIZE[0]
    weights = (
        inner * _hat(y, nodes[:, 1], SIZE[1] / DIVISIONS[1]) * _hat(z, nodes[:, 2], SIZE[2] / DIVISIONS[2])
    )

    phi = np.radians(case.half_angle)
    normal = np.array([side * np.cos(phi), -np.sin(phi), 0.0])
    up = np.array([side * np.sin(phi), np.cos(phi), 0.0])
    frame = np.stack([normal, up, np.cross(normal, up)])
    rows = np.einsum("pn,di->pdni", weights, frame).reshape(3 * len(y), -1)
    arms = np.column_stack([np.full(len(y), side * HALF_WIDTH), y - y.mean(), z])
    plug = np.concatenate([np.hstack([frame, np.cross(arm, frame)]) for arm in arms])

    apart = np.linalg.solve(k, rows[0::3].sum(axis=0))
    apart *= SPRUNG / (rows[0::3] @ apart).mean()
    basis = (
        np.eye(len(k))
        if case.modes is None
        else la.eigh(k, np.diag(m), subset_by_index=(0, case.modes - 1))[1]
    )
    mobility = basis @ np.linalg.inv(basis.T @ (np.diag(2.0 * m / STEP) + 0.5 * STEP * k) @ basis) @ basis.T
    return plug, rows @ mobility @ rows.T, -rows @ (mobility @ (k @ apart))


def _hat(x: Array, nodes: Array, width: float) -> Array:
    """Linear weight of each node at each x, shape (x, nodes)."""
    return np.maximum(0.0, 1.0 - np.abs(x[:, None] - nodes) / width)
