"""The step of a snap connector: 002's steps in its order, one compiled function for the servo and off line.

1. *Free motion* (4, 5, 11 to 14): prongs and plug in the middle of the step, without contact.
2. *Collision detection* (IV-A): points interpolated on the prongs, in the plug's frame, their distances and
   normals; the deepest of each k-means cluster.
3. *Contact solver* (23 to 28): Delassus operator, maximal dissipation.
4. *Update* (14, 18): contact forces move prongs and plug; energies; force on the floor (29).

**Where a gap is taken.** Distance and normal are those at the step's start; the law asks for the velocity
v_eps = v+ + eps v (physics.contact.midpoint) and does the work f_n T vh_n = f_n (T (1 - eps) v_n - g) / 2
in a step. With eps = 1 that is -f_n g / 2: contacts feed in nothing but what pushes a penetration out. With
eps < 1 they do wherever a contact parts at the step's start, v_n > 0, and would close at its end: that is
how a prong's stiff modes ring, v+ = -v about a skin that hardly moves. So eps = 1 is the law for elastic
prongs; a rigid body on a rigid floor wants eps = 0.

**What becomes a contact.** Without contact forces a bent prong would leap millimetres in the step, and all
of its points with it. So a point becomes a contact where the motion under the *last* step's forces would
bring it nearer than the margin: these are the points that touch. Where the forces found then differ so
much that something moves on by more than the margin, as in the click, points may have been missed, and
detection is repeated with these forces.

**Books.** With E the energy of prongs, couplings, plug and hold,

    E - E_0 = W_normal + W_friction + W_target - L_damping

to rounding, at any stiffness and step; W_correction = -sum f_n g / 2 is the part of W_normal that the gap
does: it pays for a penetration that is pushed out, and takes from a body that is stopped early.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.physics.arrays import all_finite
from palpo.physics.collision.clusters import Clusters, update_clusters
from palpo.physics.collision.distance_field import evaluate
from palpo.physics.contact.laws import BIPOTENTIAL, augment, contact_status, project_cone
from palpo.physics.contact.midpoint import assemble
from palpo.physics.contact.residual import RUNAWAY, natural_map_norm
from palpo.physics.contact.solvers.block import add_row, set_offset
from palpo.physics.contact.solvers.gauss_seidel import sweep_contacts
from palpo.physics.contact.solvers.maximal_dissipation import (
    CONTINUE,
    CONVERGED,
    DIVERGED,
    Relaxation,
    solve_contacts,
)
from palpo.physics.dynamics.admittance import DAMPING, TARGET, plug_advance, plug_energy, plug_free
from palpo.physics.errors import InputError
from palpo.physics.exchange.atomics import view_flat, view_square
from palpo.physics.exchange.handle import handle_like
from palpo.physics.exchange.port import NOT_FINITE, OK
from palpo.physics.exchange.snap_frame import (
    COUPLING,
    ELASTIC,
    KINETIC,
    LOST_DAMPING,
    MAXIMAL_DISSIPATION,
    PLUG,
    SET_CLUSTERS,
    SET_CORRECTION,
    SET_FRICTION,
    SET_RESTITUTION,
    SET_SOLVER,
    SET_SWEEPS,
    SET_TOLERANCE,
    WORK_CORRECTION,
    WORK_FRICTION,
    WORK_NORMAL,
    WORK_TARGET,
)
from palpo.physics.kernels import inlined, kernel
from palpo.physics.math3 import (
    cross3,
    dot3,
    matvec3,
    matvec3_transposed,
    quat_from_rotvec,
    quat_multiply,
    quat_to_matrix,
    tangent_basis,
)
from palpo.physics.reduction.segments import (
    advance,
    apply,
    dissipated,
    energies,
    floor_force,
    free,
    point_compliance,
    point_value,
    surface_values,
)
from palpo.physics.systems.snap_model import ACTIVE, CODE, CONTACTS, LOST, ROUNDS, STEPS, SWEEPS, SnapModel

LLOYD_SWEEPS = 4
"""Of k-means in one step; it goes on in the next."""

MOST_ROUNDS = 3
"""Of detection and solution in one step; the first does but where forces vanish, as in the click."""

BOUNDED = 1e12
"""Past this sum of energies [J] and velocities a run is lost."""


@kernel
def free_motion(s, target_position, target_orientation):
    """1. Velocities in the middle of the step without contact (4, 5, 14)."""
    plug_free(s.plug, s.motion, target_position, target_orientation, s.load)
    for k in range(s.prongs.size):
        prong = handle_like(s.prong, s.prongs[k])
        free(prong.model, prong.state, prong.work)


@kernel
def _foresee(s, prong, drift):
    """drift (k, 3) = T (2 vh - (1 - eps) v) of the contact nodes under the newest forces."""
    T, old, flat, push = s.plug.step, 1.0 - s.live[SET_RESTITUTION], view_flat(drift), prong.push
    compliance, v, vh = prong.model.compliance, prong.v, prong.vh
    for a in range(drift.shape[0]):
        for i in range(3):
            drift[a, i] = T * (2.0 * vh[a, i] - old * v[a, i])
    for a in range(drift.shape[0]):
        for i in range(3):
            if push[a, i] != 0.0:
                add_row(flat, compliance[3 * a + i], 2.0 * T * push[a, i])


@kernel
def _foresee_plug(s, drift):
    """drift (6,), the same of the plug."""
    T, old = s.plug.step, 1.0 - s.live[SET_RESTITUTION]
    for i in range(6):
        drift[i] = T * (2.0 * s.motion.free[i] - old * s.motion.velocity[i])
        for j in range(6):
            drift[i] += 2.0 * T * s.plug.inverse[i, j] * s.wrench[j]


@kernel
def _interpolate(s, prong):
    """Candidate points of a prong: where they are, and how they close in under the forces foreseen."""
    c, nodes, weights, first = s.candidates, prong.points.nodes, prong.points.weights, prong.first
    rest, x, drift, plug = prong.model.rest, prong.x, prong.drift, s.drift
    position, local, closing, origin, turn = c.position, c.local, c.closing, s.motion.position, s.turn
    for j in range(nodes.shape[0]):
        p0, p1, p2, u0, u1, u2 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for a in range(3):
            w, m = weights[j, a], nodes[j, a]
            p0 += w * (rest[m, 0] + x[m, 0])
            p1 += w * (rest[m, 1] + x[m, 1])
            p2 += w * (rest[m, 2] + x[m, 2])
            u0 += w * drift[m, 0]
            u1 += w * drift[m, 1]
            u2 += w * drift[m, 2]
        k = first + j
        position[k, 0], position[k, 1], position[k, 2] = p0, p1, p2
        p0, p1, p2 = p0 - origin[0], p1 - origin[1], p2 - origin[2]
        u0 -= plug[0] + plug[4] * p2 - plug[5] * p1
        u1 -= plug[1] + plug[5] * p0 - plug[3] * p2
        u2 -= plug[2] + plug[3] * p1 - plug[4] * p0
        for i in range(3):
            local[k, i] = turn[0, i] * p0 + turn[1, i] * p1 + turn[2, i] * p2
            closing[k, i] = turn[0, i] * u0 + turn[1, i] * u1 + turn[2, i] * u2


@kernel
def _find_near(s, prong, count):
    """Candidates that could come within the margin in this step, after `count` of other prongs.

    A distance changes no faster than its point moves, so that where it was asked last bounds it now.
    """
    c, margin = s.candidates, s.margin
    local, asked, told, closing, near, where = c.local, c.asked, c.told, c.closing, c.near, c.where
    prong.near[0] = count
    for k in range(prong.first, prong.first + prong.points.nodes.shape[0]):
        moved, way = 0.0, 0.0
        for i in range(3):
            moved += (local[k, i] - asked[k, i]) ** 2
            way += closing[k, i] ** 2
        if told[k] - moved**0.5 > margin + way**0.5:
            continue
        near[count] = k
        for i in range(3):
            where[count, i] = local[k, i]
        count += 1
    prong.near[1] = count
    return count


@inlined
def _seen_gap(s, gap):
    """The gap as the contact law sees it."""
    return gap if gap > 0.0 else s.live[SET_CORRECTION] * gap


@kernel
def _activate(s, prong):
    """Candidates that the last forces would let come within the margin; how many."""
    c, count = s.candidates, 0
    for j in range(prong.near[0], prong.near[1]):
        k = c.near[j]
        c.told[k] = c.gap[j]
        for i in range(3):
            c.asked[k, i] = c.where[j, i]
        n = c.normal[j]
        if n[0] == 0.0 and n[1] == 0.0 and n[2] == 0.0:
            continue  # beyond the distance's band
        c.ahead[k] = min(c.ahead[k], _seen_gap(s, c.gap[j]) + dot3(n, c.closing[k]))
        if c.ahead[k] < s.margin:
            prong.active[count] = j
            prong.depth[count] = c.gap[j]
            for i in range(3):
                prong.place[count, i] = c.where[j, i]
            count += 1
    return count


@kernel
def _add_contact(s, prong, k, j):
    """Contact k at near candidate j; its starting force is that candidate's own."""
    c, t, i = s.candidates, s.contacts, s.candidates.near[j]
    t.near[k], t.candidate[k] = j, i
    for d in range(3):
        t.nodes[k, d] = prong.points.nodes[i - prong.first, d]
        t.weights[k, d] = prong.points.weights[i - prong.first, d]
        t.point[k, d] = c.position[i, d]
        t.arm[k, d] = c.position[i, d] - s.motion.position[d]
        t.force[k, d] = c.force[i, d]
    matvec3(s.turn, c.normal[j], t.frame[k, 0])
    tangent_basis(t.frame[k, 0], t.frame[k, 1], t.frame[k, 2])


@kernel
def _choose_clustered(s, prong, active, most):
    """The deepest point of each cluster, from the forces of all its points."""
    g, c, first = prong.clusters, s.candidates, s.counter[CONTACTS]
    clusters = Clusters(g.centre[:most], g.count, g.label, g.offset2, g.deepest, g.members)
    clusters.count[0] = min(clusters.count[0], most)
    n = update_clusters(clusters, prong.place, prong.depth, active, LLOYD_SWEEPS)
    for k in range(n):
        _add_contact(s, prong, first + k, prong.active[clusters.deepest[k]])
        s.contacts.force[first + k] = 0.0
    for a in range(active):
        k = clusters.label[a]
        for d in range(3):
            s.contacts.force[first + k, d] += c.force[c.near[prong.active[a]], d]
    s.counter[CONTACTS] += n


@kernel
def _choose_all(s, prong, active):
    """Every active point; where there is no room, the deepest."""
    t, first, n = s.contacts, s.counter[CONTACTS], 0
    room = t.candidate.size // s.prongs.size
    for a in range(active):
        if n < room:
            t.candidate[first + n] = a
            n += 1
            continue
        s.counter[LOST] += 1
        shallow = -1
        for k in range(n):
            if shallow < 0 or prong.depth[t.candidate[first + k]] > prong.depth[t.candidate[first + shallow]]:
                shallow = k
        if shallow >= 0 and prong.depth[a] < prong.depth[t.candidate[first + shallow]]:
            t.candidate[first + shallow] = a
    for k in range(n):
        _add_contact(s, prong, first + k, prong.active[t.candidate[first + k]])
    s.counter[CONTACTS] += n


@kernel
def locate(s):
    """2. Contact nodes at the step's start, and their motion without contact."""
    quat_to_matrix(s.motion.orientation, s.turn)
    s.candidates.ahead[:] = np.inf
    for k in range(s.prongs.size):
        prong = handle_like(s.prong, s.prongs[k])
        surface_values(prong.model, prong.state.x, prong.x)
        surface_values(prong.model, prong.state.v, prong.v)
        surface_values(prong.model, prong.work.vh, prong.vh)


@kernel
def detect(s):
    """2. Contacts of all prongs with the plug (IV-A), as the newest forces let foresee them."""
    c, near = s.candidates, 0
    _foresee_plug(s, s.drift)
    for k in range(s.prongs.size):
        prong = handle_like(s.prong, s.prongs[k])
        _foresee(s, prong, prong.drift)
        _interpolate(s, prong)
        near = _find_near(s, prong, near)
    evaluate(s.field, c.where, near, c.gap, c.normal, s.scratch)
    s.counter[CONTACTS] = 0
    s.counter[ACTIVE] = 0
    most = int(s.live[SET_CLUSTERS])
    for k in range(s.prongs.size):
        prong = handle_like(s.prong, s.prongs[k])
        prong.contact[0] = s.counter[CONTACTS]
        active = _activate(s, prong)
        s.counter[ACTIVE] += active
        if most > 0:
            _choose_clustered(s, prong, active, most)
        else:
            _choose_all(s, prong, active)
        prong.contact[1] = s.counter[CONTACTS]
    c.force[:] = 0.0


@kernel
def missed(s):
    """Whether the forces found let a node or the plug move on by more than the margin that detection left."""
    after = view_flat(s.system.scratch[0:2])
    _foresee_plug(s, after)
    way = 0.0
    for i in range(3):
        way += (after[i] - s.drift[i]) ** 2
    for k in range(s.prongs.size):
        prong = handle_like(s.prong, s.prongs[k])
        _foresee(s, prong, prong.after)
        for a in range(prong.after.shape[0]):
            own = 0.0
            for i in range(3):
                own += (prong.after[a, i] - prong.drift[a, i]) ** 2
            way = max(way, own)
    return way > s.margin**2


@inlined
def _matrix(s):
    """W of the present contacts, shape (3 n, 3 n), over the packed memory."""
    n = 3 * s.counter[CONTACTS]
    return view_square(s.system.w, n)


@kernel
def _plug_rows(s):
    """J_p and J_p Mh_p^-1 (25, 26)."""
    q, t = s.system, s.contacts
    for k in range(s.counter[CONTACTS]):
        for d in range(3):
            row = q.lever[3 * k + d]
            for i in range(3):
                row[i] = t.frame[k, d, i]
            cross3(t.arm[k], t.frame[k, d], row[3:6])
            for j in range(6):
                total = 0.0
                for i in range(6):
                    total += row[i] * s.plug.inverse[i, j]
                q.give[3 * k + d, j] = total


@kernel
def _velocities(s):
    """Relative velocity of prong to plug at the contacts: in the middle without contact, and at the start."""
    q, t, point = s.system, s.contacts, s.system.scratch[0]
    for k in range(s.prongs.size):
        prong = handle_like(s.prong, s.prongs[k])
        for c in range(prong.contact[0], prong.contact[1]):
            for out, field, plug in (
                (q.middle, prong.vh, s.motion.free),
                (q.now, prong.v, s.motion.velocity),
            ):
                for i in range(3):
                    point[i] = 0.0
                    for a in range(3):
                        point[i] += t.weights[c, a] * field[t.nodes[c, a], i]
                for d in range(3):
                    total = dot3(t.frame[c, d], point)
                    for j in range(6):
                        total -= q.lever[3 * c + d, j] * plug[j]
                    out[3 * c + d] = total
            q.gap[c] = _seen_gap(s, s.candidates.gap[t.near[c]])
            q.mu[c] = s.live[SET_FRICTION]


@kernel
def delassus(s):
    """3. u = W r + b of the contacts (23 to 28), W = 2 T (J_s A J_s^T + J_p Mh_p^-1 J_p^T)."""
    q, t, n, w = s.system, s.contacts, 3 * s.counter[CONTACTS], _matrix(s)
    _plug_rows(s)
    _velocities(s)
    for i in range(n):
        give, line = q.give[i], w[i]
        for j in range(i + 1):
            total = 0.0
            for m in range(6):
                total += give[m] * q.lever[j, m]
            line[j] = total
    world, part = q.scratch[0:3], q.scratch[3]
    for k in range(s.prongs.size):
        prong = handle_like(s.prong, s.prongs[k])
        for a in range(prong.contact[0], prong.contact[1]):
            for b in range(prong.contact[0], a + 1):
                point_compliance(prong.model, t.nodes[a], t.weights[a], t.nodes[b], t.weights[b], world)
                for d in range(3):
                    matvec3_transposed(world, t.frame[a, d], part)
                    for e in range(3):
                        w[3 * a + d, 3 * b + e] += dot3(part, t.frame[b, e])
    for i in range(n):
        for j in range(i):
            w[j, i] = w[i, j]
    gap = q.gap[: s.counter[CONTACTS]]
    assemble(w, q.middle, q.now, gap, s.plug.step, s.live[SET_RESTITUTION], w, q.b)


@kernel
def solve(s):
    """3. Contact forces (28), from those of the last step."""
    q, t, n, w = s.system, s.contacts, s.counter[CONTACTS], _matrix(s)
    s.counter[CODE], s.residual[0] = CONVERGED, 0.0
    if n == 0:
        return
    trace, offset, warm = 0.0, 0.0, 0.0
    for k in range(n):
        r = q.r[3 * k : 3 * k + 3]
        for d in range(3):
            r[d] = dot3(t.frame[k, d], t.force[k])
        project_cone(r, q.mu[k], r)
        for d in range(3):
            trace += w[3 * k + d, 3 * k + d]
            offset += q.b[3 * k + d] ** 2
            warm += r[d] ** 2
    bound = RUNAWAY * (offset**0.5 * (3 * n / trace if trace > 0.0 else 1.0) + warm**0.5)
    mu, tolerance, sweeps = q.mu[:n], s.live[SET_TOLERANCE], int(s.live[SET_SWEEPS])
    if s.live[SET_SOLVER] == MAXIMAL_DISSIPATION:
        s.counter[CODE], done, s.residual[0] = solve_contacts(
            w, q.b, mu, q.r, q.u, 0, Relaxation(1.0, 1.0, 1.0), tolerance, bound, sweeps, q.progress
        )
    else:
        done = sweep_contacts(w, q.b, mu, q.r, q.u, t.status, 0, n, tolerance, sweeps, q.scratch)
        set_offset(w, q.b, q.r, q.u, 0, 3 * n)
        error, size = natural_map_norm(w, mu, q.r, q.u, 0, n, q.scratch)
        s.residual[0] = error / size if size > 0.0 else error
        s.counter[CODE] = CONTINUE if done == sweeps else CONVERGED
        if not size <= bound:
            s.counter[CODE] = DIVERGED
    s.counter[SWEEPS] += done
    rho, star = 3 * n / trace if trace > 0.0 else 1.0, q.scratch[0]
    for k in range(n):
        i = 3 * k
        augment(BIPOTENTIAL, q.r[i : i + 3], q.u[i : i + 3], q.mu[k], rho, rho, star)
        t.status[k] = contact_status(q.r[i], star, q.mu[k])


@kernel
def spread(s):
    """3. Contact forces in world axes: on the contact nodes, and as a wrench on the plug."""
    q, t, moment = s.system, s.contacts, s.system.scratch[0]
    s.wrench[:] = 0.0
    for p in range(s.prongs.size):
        prong = handle_like(s.prong, s.prongs[p])
        prong.push[:] = 0.0
        for k in range(prong.contact[0], prong.contact[1]):
            for i in range(3):
                t.force[k, i] = 0.0
                for d in range(3):
                    t.force[k, i] += q.r[3 * k + d] * t.frame[k, d, i]
                s.candidates.force[t.candidate[k], i] = t.force[k, i]
                for a in range(3):
                    prong.push[t.nodes[k, a], i] += t.weights[k, a] * t.force[k, i]
            cross3(t.arm[k], t.force[k], moment)
            for i in range(3):
                s.wrench[i] -= t.force[k, i]
                s.wrench[3 + i] -= moment[i]


@kernel
def _book_contacts(s, prong):
    """Works of the contacts of a prong in the middle of the step, where all is moved."""
    q, t, T, point = s.system, s.contacts, s.plug.step, s.system.scratch[0]
    for k in range(prong.contact[0], prong.contact[1]):
        point_value(prong.model, prong.work.vh, t.nodes[k], t.weights[k], point)
        for d in range(3):
            speed = dot3(t.frame[k, d], point)
            for j in range(6):
                speed -= q.lever[3 * k + d, j] * s.motion.middle[j]
            s.books[WORK_NORMAL if d == 0 else WORK_FRICTION] += T * q.r[3 * k + d] * speed
        s.books[WORK_CORRECTION] -= 0.5 * q.r[3 * k] * q.gap[k]


@kernel
def update(s):
    """4. All move under the contact forces (14, 18); works, and the force on the floor (29)."""
    for i in range(6):
        s.stretch[i] = s.motion.error[i]
    plug_advance(s.plug, s.motion, s.wrench)
    _feel(s)
    s.floor[:] = 0.0
    t = s.contacts
    for p in range(s.prongs.size):
        prong = handle_like(s.prong, s.prongs[p])
        first, last = prong.contact[0], prong.contact[1]
        apply(
            prong.model, prong.work, t.nodes[first:last], t.weights[first:last], t.force[first:last],
            last - first,
        )  # fmt: skip
        _book_contacts(s, prong)
        s.books[LOST_DAMPING] += dissipated(prong.model, prong.state, prong.work)
        floor_force(prong.model, prong.state, prong.work, prong.floor)
        for i in range(3):
            s.floor[i] += prong.floor[i]
        advance(prong.model, prong.state, prong.work)
    s.counter[STEPS] += 1


@kernel
def _feel(s):
    """The hold's pull on the hand in the middle of the step: D_ad (V - W) + K_ad eh; times W, it is work."""
    m, T = s.motion, s.plug.step
    for i in range(6):
        s.stretch[i] += 0.5 * T * (m.middle[i] - m.target_velocity[i])
    for i in range(6):
        s.hand[i] = 0.0
        for j in range(6):
            s.hand[i] += s.plug.damping[i, j] * (m.middle[j] - m.target_velocity[j])
            s.hand[i] += s.plug.stiffness[i, j] * s.stretch[j]


@kernel
def measure(s):
    """Energies into the books; returns OK or NOT_FINITE."""
    books, total = s.books, 0.0
    books[KINETIC] = books[ELASTIC] = books[COUPLING] = 0.0
    for k in range(s.prongs.size):
        prong = handle_like(s.prong, s.prongs[k])
        total += energies(prong.model, prong.state, prong.energy)
        last = prong.energy.shape[0] - 1
        for i in range(last):
            books[KINETIC] += prong.energy[i, 0]
            books[ELASTIC] += prong.energy[i, 1]
        books[COUPLING] += prong.energy[last, 1]
    books[PLUG] = plug_energy(s.plug, s.motion)
    books[WORK_TARGET] = s.motion.work[TARGET]
    total += books[PLUG] + abs(s.motion.work[DAMPING]) + abs(books[LOST_DAMPING])
    return OK if total < BOUNDED else NOT_FINITE


@kernel
def _placed(s):
    """Whether all is somewhere: a point that is nowhere touches nothing, and its contact would be lost."""
    well = all_finite(s.motion.position) and all_finite(s.motion.orientation)
    for k in range(s.prongs.size):
        well = well and all_finite(view_flat(handle_like(s.prong, s.prongs[k]).x))
    return well


@kernel
def step(s, target_position, target_orientation):
    """One step in which the target goes to (3,) [m], (4,); s: handle of a SnapState.

    Returns OK, or NOT_FINITE where a place or a number of the contact problem is none: no force has been
    applied then.
    """
    free_motion(s, target_position, target_orientation)
    locate(s)
    if not _placed(s):
        return NOT_FINITE
    s.counter[ROUNDS] = s.counter[SWEEPS] = 0
    while s.counter[ROUNDS] == 0 or (s.counter[ROUNDS] < MOST_ROUNDS and missed(s)):
        s.counter[ROUNDS] += 1
        detect(s)
        delassus(s)
        rows = 3 * s.counter[CONTACTS]
        if not (all_finite(s.system.w[: rows * rows]) and all_finite(s.system.b[:rows])):
            return NOT_FINITE
        solve(s)
        spread(s)
    update(s)
    return OK


@kernel
def run_steps(s, positions, orientations, out):
    """A step for each target (n, 3), (n, 4), told by a row of out (n, COLUMNS); how many were well."""
    for k in range(positions.shape[0]):
        if step(s, positions[k], orientations[k]) != OK or measure(s) != OK:
            return k
        row, depth, normal = out[k], 0.0, 0.0
        for c in range(s.counter[CONTACTS]):
            depth = max(depth, -s.candidates.gap[s.contacts.near[c]])
            normal += s.system.r[3 * c]
        row[0:3] = s.motion.position
        row[3:7] = s.motion.orientation
        row[7:13] = s.hand
        row[13:19] = s.wrench
        row[19:22] = s.floor
        row[22] = s.counter[CONTACTS]
        row[23] = s.counter[ACTIVE]
        row[24] = s.counter[SWEEPS]
        row[25] = s.residual[0]
        row[26] = depth
        row[27] = normal
        row[28] = s.motion.work[DAMPING]
        row[29:38] = s.books
    return positions.shape[0]


COLUMNS = 38


class Series(NamedTuple):
    """What happened in each of n steps."""

    time: NDArray[np.float64]  # (n,) at the step's end [s]
    travel: NDArray[np.float64]  # (n,) of the plug along the push [m]
    position: NDArray[np.float64]  # (n, 3) of the plug [m]
    orientation: NDArray[np.float64]  # (n, 4)
    hand: NDArray[np.float64]  # (n, 6) of the hold on the hand [N], [N m]
    wrench: NDArray[np.float64]  # (n, 6) of the contacts on the plug [N], [N m]
    floor: NDArray[np.float64]  # (n, 3) of the prongs on the floor [N]
    contacts: NDArray[np.float64]  # (n,)
    active: NDArray[np.float64]  # (n,) points that touch, before clustering
    sweeps: NDArray[np.float64]  # (n,)
    residual: NDArray[np.float64]  # (n,)
    depth: NDArray[np.float64]  # (n,) largest penetration of a contact at the step's start [m]
    normal: NDArray[np.float64]  # (n,) sum of the normal forces [N]
    energy: NDArray[
        np.float64
    ]  # (n, 4) KINETIC, ELASTIC, COUPLING, PLUG of palpo.physics.exchange.snap_frame [J]
    work: NDArray[np.float64]  # (n, 4) WORK_NORMAL, WORK_FRICTION, WORK_CORRECTION, WORK_TARGET [J]
    lost: NDArray[np.float64]  # (n,) taken by all dampings [J]

    @property
    def balance(self) -> NDArray[np.float64]:
        """E less works plus losses [J], shape (n,): constant, to rounding."""
        return self.energy.sum(axis=1) - self.work[:, [0, 1, 3]].sum(axis=1) + self.lost


class Insertion:
    """A plug led along a scripted path of its target, off line.

    speed: of the target along the push [m/s]. offset (3,) [m] and tilt (3,) [rad]: of the target's path and
    axes all along, about the plug's centre. The plug starts at rest on its target.
    """

    def __init__(
        self,
        model: SnapModel,
        speed: float = 0.05,
        offset: ArrayLike = (0.0, 0.0, 0.0),
        tilt: ArrayLike = (0.0, 0.0, 0.0),
    ) -> None:
        """Raises InputError for a speed that is not positive."""
        if not speed > 0.0:
            raise InputError(f"the speed of an insertion is {speed} m/s, expected a positive number.")
        self.model, self.speed = model, float(speed)
        self.origin = model.start + np.asarray(offset, float)
        self.axes = np.zeros(4)
        quat_from_rotvec(np.asarray(tilt, float), turn := np.zeros(4))
        quat_multiply(turn, model.upright, self.axes)
        model.place(self.origin, self.axes)
        self.target, self.steps = 0.0, 0

    def run(self, travel: float | None = None, rest: float = 0.0) -> Series:
        """Lead the target to `travel` [m] from the start, by default the stroke, and let it rest [s].

        May be called again, to go further or back out. Stops at a step that fails.
        """
        model, T = self.model, self.model.numerics.step
        travel = model.connector.stroke if travel is None else travel
        n = max(1, round(abs(travel - self.target) / (self.speed * T)))
        way = np.concatenate([np.linspace(self.target, travel, n + 1)[1:], np.full(round(rest / T), travel)])
        self.target = travel
        return self.follow(self.origin + way[:, None] * model.connector.push)

    def follow(self, positions: NDArray, orientations: Sequence | NDArray | None = None) -> Series:
        """Lead the target along positions (n, 3) [m] and orientations (n, 4), by default the insertion's."""
        n, model = len(positions), self.model
        q = np.tile(self.axes, (n, 1)) if orientations is None else np.ascontiguousarray(orientations, float)
        out = np.zeros((n, COLUMNS))
        n = run_steps(model.handle, np.ascontiguousarray(positions, float), q, out)
        out, first = out[:n], self.steps + 1
        self.steps += n
        return Series(
            time=model.numerics.step * np.arange(first, first + n),
            travel=(out[:, 0:3] - self.origin) @ model.connector.push,
            position=out[:, 0:3],
            orientation=out[:, 3:7],
            hand=out[:, 7:13],
            wrench=out[:, 13:19],
            floor=out[:, 19:22],
            contacts=out[:, 22],
            active=out[:, 23],
            sweeps=out[:, 24],
            residual=out[:, 25],
            depth=out[:, 26],
            normal=out[:, 27],
            energy=out[:, 29:33],
            work=out[:, 33:37],
            lost=out[:, 28] + out[:, 37],
        )
