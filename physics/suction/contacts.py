"""Contacts between cups, their partner and the ground (000, 3.2.1), as the engine lists them.

A contact adds something only where it says what no other one says already. So there is at most one for each
cup vertex near the partner; one for a partner's vertex only where the partner bulges into a triangle of the
cup (elsewhere its gap is the mean of those at the triangle's corners).

The cup is body 1 against its partner, the partner against the ground, and the normal points to body 1.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contract.contacts import append
from palpo.physics.contract.memory import close_memory, open_memory, recall, remember
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.numerics.math3 import tangent_basis

WORLD = -1
"""Number of what never moves."""


class Partner(NamedTuple):
    """What a cup, or the ground, meets: a body whose points are its nodes, or a place on it as a whole."""

    number: int
    whole: bool
    """Whether it moves as one: its points are places beside its origin."""
    origin: NDArray[np.float64]
    """Shape (3,) [m], world."""
    nodes: NDArray[np.int32]
    """Node of each vertex of its surface, shape (n,)."""


class Pair(NamedTuple):
    """A cup, body 1, and its partner, body 2, as they may touch."""

    first: int
    """The cup's number."""
    mu: float
    alarm: float
    """Distance [m] up to which there are contacts."""
    kept: float
    """Contact distance [m]."""
    turn: NDArray[np.float64]
    """The axes in which gaps were measured, shape (3, 3)."""


@inlined
def add_contact(contacts, identity, first, second, normal, gap, mu):
    """Number of a new contact of that unit normal (3,), from body 2 to body 1, and gap [m]; -1 if it is lost.

    Where it touches is still to be written: slots and weights are 0.
    """
    k = append(contacts, identity, first, second)
    if k >= 0:
        contacts.gap[k], contacts.mu[k] = gap, mu
        frame = contacts.frame[k]
        frame[0] = normal
        tangent_basis(frame[0], frame[1], frame[2])
        contacts.slots[k] = 0
        contacts.weights[k] = 0.0
    return k


@inlined
def _touch(contacts, k, side, partner, nodes, weights, x):
    """Where contact k touches the partner: nodes and weights (3,), or the place x (3,) [m] of one body."""
    if partner.whole:
        contacts.weights[k, side, 0] = 1.0
        for j in range(3):
            contacts.arm[k, side, j] = x[j] - partner.origin[j]
    else:
        for j in range(3):
            contacts.slots[k, side, j], contacts.weights[k, side, j] = nodes[j], weights[j]


@kernel
def add_vertices(gaps, pair, x, nodes, place, partner, triangles, start, contacts):
    """Contacts of a cup's vertices near its partner.

    gaps: of the surface's vertices. x (n, 3): the vertices [m], world. nodes (n,): node of each; place: of
    the nodes among those that may yield, -1 for none; triangles (m, 3): the partner's. start: number of
    vertex 0.
    """
    normal, at, corner = np.empty(3), np.empty(3), np.empty(3, np.int32)
    for v in range(gaps.distance.size):
        d = gaps.distance[v]
        if not d <= pair.alarm:
            continue
        if place[nodes[v]] < 0:
            # a stem far from what it will not reach lacks no contact
            contacts.count[0].lost += d <= pair.kept
            continue
        _turned(pair.turn, gaps.normal[v], normal)
        k = add_contact(contacts, start + v, pair.first, partner.number, normal, d - pair.kept, pair.mu)
        if k < 0:
            continue
        contacts.slots[k, 0, 0], contacts.weights[k, 0, 0] = nodes[v], 1.0
        for j in range(3):
            corner[j] = partner.nodes[triangles[gaps.triangle[v], j]]
            at[j] = x[v, j] - d * normal[j]
        _touch(contacts, k, 1, partner, corner, gaps.weights[v], at)


@kernel
def add_bulges(gaps, cup_gaps, pair, x, nodes, place, partner, triangles, start, contacts):
    """Contacts of a partner's vertices where it bulges into the cup by half the contact distance.

    gaps: of the partner's vertices from the cup; x (n, 3): them, world [m]. nodes, triangles, cup_gaps: of
    the cup. Others see `add_vertices`.
    """
    normal, alone, itself = np.empty(3), np.array([1.0, 0.0, 0.0]), np.zeros(3, np.int32)
    for u in range(gaps.distance.size):
        d = gaps.distance[u]
        if not d <= pair.alarm:
            continue
        t, between, yields = gaps.triangle[u], 0.0, False
        for j in range(3):
            if gaps.weights[u, j] > 0.0:
                yields |= place[nodes[triangles[t, j]]] >= 0
                between += gaps.weights[u, j] * min(cup_gaps.distance[triangles[t, j]], 2.0 * pair.alarm)
        if d > between - 0.5 * pair.kept:
            continue
        if not yields:
            contacts.count[0].lost += d <= pair.kept
            continue
        _turned(pair.turn, gaps.normal[u], normal)
        for i in range(3):
            normal[i] = -normal[i]
        k = add_contact(contacts, start + u, pair.first, partner.number, normal, d - pair.kept, pair.mu)
        if k < 0:
            continue
        for j in range(3):
            contacts.slots[k, 0, j] = nodes[triangles[t, j]]
            contacts.weights[k, 0, j] = gaps.weights[u, j]
        itself[0] = partner.nodes[u]
        _touch(contacts, k, 1, partner, itself, alone, x[u])


@kernel
def add_ground(x, vertices, partner, height, alarm, kept, mu, start, contacts):
    """Contacts of those `vertices` (k,) of a partner, at x (n, 3) [m], that are within `alarm` of the ground.

    Others see `add_vertices`; a soft partner's vertices may yield.
    """
    normal, alone, itself = np.array([0.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0]), np.zeros(3, np.int32)
    for v in vertices:
        d = x[v, 1] - height
        if d <= alarm:
            k = add_contact(contacts, start + v, partner.number, WORLD, normal, d - kept, mu)
            if k >= 0:
                itself[0] = partner.nodes[v]
                _touch(contacts, k, 0, partner, itself, alone, x[v])


@inlined
def _turned(turn, a, out):
    for i in range(3):
        out[i] = turn[i, 0] * a[0] + turn[i, 1] * a[1] + turn[i, 2] * a[2]


@kernel
def recall_all(memory, contacts, q, h):
    """The forces of the last step on those of the contacts that were there; q (4,): axes of the memory.

    Contacts and memory are in rising order of their numbers, but for the ground's, whose vertices may be in
    any order: those are looked for.
    """
    g, at = memory.present[0], 0
    known, count = memory.identity[g], memory.count[g]
    for k in range(contacts.count[0].found):
        this = contacts.identity[k]
        while at < count and known[at] < this:
            at += 1
        if contacts.body[k, 1] == WORLD or (at < count and known[at] == this):
            recall(memory, contacts, k, q, h, at)


@kernel
def carry_on(memory, contacts):
    """After `recall_all`: forces go on as they have changed from the last step but one to the last.

    A start nearer to what is looked for: of a motion that is steady by one order in the step. Of contacts
    that bore in both steps; those of the ground may be passed by. The memory is in the contacts' axes.
    """
    g, at = 1 - memory.present[0], 0
    known, count = memory.identity[g], memory.count[g]
    for k in range(contacts.count[0].found):
        this, force = contacts.identity[k], contacts.force[k]
        while at < count and known[at] < this:
            at += 1
        if at < count and known[at] == this and (force[0] != 0.0 or force[1] != 0.0 or force[2] != 0.0):
            for j in range(3):
                force[j] += force[j] - memory.force[g, at, j]


@kernel
def remember_all(memory, contacts, solved, u, q):
    """The contacts that bear, of those `solved` (m,), which end the step with gaps and slips u (3 m,) [m]."""
    open_memory(memory)
    for i in range(solved.size):
        force = contacts.force[solved[i]]
        if force[0] != 0.0 or force[1] != 0.0 or force[2] != 0.0:
            remember(memory, contacts, solved[i], u[3 * i : 3 * i + 3], q)
    close_memory(memory)


@kernel
def forces_in_frames(contacts, solved, r):
    """r (3 m,) = the forces of the contacts `solved` (m,) [N], in their frames."""
    for i in range(solved.size):
        force = contacts.force[solved[i]]
        for a in range(3):
            axis = contacts.frame[solved[i], a]
            r[3 * i + a] = axis[0] * force[0] + axis[1] * force[1] + axis[2] * force[2]


@kernel
def keep_forces(contacts, solved, r):
    """Each contact's force (c, 3) = r (3 m,) [N] of those `solved` (m,), world axes; none on the others."""
    contacts.force[: contacts.count[0].found] = 0.0
    for i in range(solved.size):
        force = contacts.force[solved[i]]
        for a in range(3):
            for j in range(3):
                force[j] += contacts.frame[solved[i], a, j] * r[3 * i + a]


@kernel
def add_pressing(contacts, solved, r, cup, partner, out):
    """out (n,) += how hard a cup's nodes press on the partner [N]; a bulge's force is its triangle's."""
    for i in range(solved.size):
        k = solved[i]
        if contacts.body[k, 0] == cup and contacts.body[k, 1] == partner:
            for j in range(3):
                out[contacts.slots[k, 0, j]] += contacts.weights[k, 0, j] * r[3 * i]
