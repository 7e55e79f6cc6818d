"""The step of a snap connector: 002's steps in its order, on the engine (`physics.engine.tick`).

1. *Free motion* (4, 5, 11 to 14): prongs and plug in the middle of the step, without contact: `begin` of
   `physics.compliance.midpoint_modal` and of `physics.compliance.midpoint_held`.
2. *Collision detection* (IV-A): points interpolated on the prongs, in the plug's frame, their distances and
   normals; the deepest of each k-means cluster: `physics.collision.field_contacts`.
3. *Contact solver* (23 to 28): the Delassus operator of what each body adds to it, maximal dissipation:
   `physics.engine.dissipating`.
4. *Update* (14, 18): contact forces move prongs and plug; force on the floor (29): `end` of both kinds.

Steps 2 and 3 are repeated where the forces found differ so much that points may have been missed, as in the
click.

**Where a gap is taken.** Distance and normal are those at the step's start; the law asks for the velocity
v_eps = v+ + eps v (EQUATIONS.md, 3) and does the work f_n T vh_n = f_n (T (1 - eps) v_n - g) / 2
in a step. With eps = 1 that is -f_n g / 2: contacts feed in nothing but what pushes a penetration out. With
eps < 1 they do wherever a contact parts at the step's start, v_n > 0, and would close at its end: that is
how a prong's stiff modes ring, v+ = -v about a skin that hardly moves. So eps = 1 is the law for elastic
prongs; a rigid body on a rigid floor wants eps = 0.

**Books.** With E the energy of prongs, couplings, plug and hold,

    E - E_0 = W_normal + W_friction + W_target - L_damping

to rounding, at any stiffness and step; W_correction = -sum f_n g / 2 is the part of W_normal that the gap
does: it pays for a penetration that is pushed out, and takes from a body that is stopped early.
"""

from palpo.physics.contract.stages import DONE
from palpo.physics.engine import tick as engine
from palpo.physics.engine.rows import relative
from palpo.physics.exchange.handle import handle_like
from palpo.physics.exchange.port import NOT_FINITE, OK
from palpo.physics.numerics.arrays import copy
from palpo.physics.numerics.kernels import kernel


@kernel
def take_settings(s, values, k):
    """What may change between two steps: entry k of values, of palpo.physics.exchange.snap_frame.VALUES."""
    new, search, solver = values[k], s.search.settings[0], s.engine.solver.settings[0]
    search.friction, search.restitution = new.friction, new.restitution
    search.correction, search.clusters = new.correction, new.clusters
    solver.method, solver.tolerance, solver.sweeps = new.solver, new.tolerance, new.sweeps


@kernel
def step(s, target_position, target_orientation):
    """One step in which the target goes to (3,) [m], (4,); s: handle of a SnapState.

    Returns OK, or NOT_FINITE where a place or a number of the contact problem is none: no force has been
    applied then.
    """
    copy(target_position, s.aim.position)
    copy(target_orientation, s.aim.orientation)
    if engine.step(s.engine) != DONE:
        s.search.begun[0] = False
        return NOT_FINITE
    book(s)
    return OK


@kernel
def book(s):
    """Energies, works of the contacts, and the force of all prongs on the floor (29)."""
    books, floor, contacts, way = s.books[0], s.floor, s.engine.contacts, s.way
    books.kinetic = books.elastic = books.coupling = books.damping = 0.0
    floor[:] = 0.0
    for k in range(s.prongs.size):
        prong = handle_like(s.prong, s.prongs[k])
        last = prong.energy.shape[0] - 1
        for i in range(last):
            books.kinetic += prong.energy[i, 0]
            books.elastic += prong.energy[i, 1]
        books.coupling += prong.energy[last, 1]
        books.damping += prong.lost[0]
        for i in range(3):
            floor[i] += prong.floor[i]
    books.plug = s.plug.energy[0]
    books.target = s.plug.motion.work[0].target
    for k in range(contacts.count[0].found):
        r = s.engine.r[3 * k : 3 * k + 3]
        relative(s.engine, k, contacts.body[k], 0, way)
        books.normal += r[0] * way[0]
        books.friction += r[1] * way[1] + r[2] * way[2]
        books.correction -= 0.5 * r[0] * contacts.gap[k]
