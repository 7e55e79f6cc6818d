"""Contact forces of a step: W of a working set, its solution, and the bodies under it.

W = sum_b J_b C_b J_b^T + c with C_b the compliance of body b, c what contacts give by themselves. The set is
solved on its own, and grows by what sinks in outside: at first it is what bore in the last step or sinks in
now. Of the contacts that are found most are open. A contact that is left out has no force, which is the
solution for it as long as it does not sink in under the forces of the others: the bodies' motion under them
tells, which is computed anyway. So W is gathered and solved for the set alone; contacts that sink in beyond
what the solver's tolerance allows join it, and it is solved once more, from the forces found so far.
"""

from palpo.physics.contact.bilateral import eliminate, free_row, recover
from palpo.physics.contact.laws import OPEN, asked_force, project_cone, relative_error
from palpo.physics.contact.solvers.block import set_offset
from palpo.physics.contract.contacts import (
    AGAIN,
    batch_of,
    body_of,
    copy_point,
    is_shaft,
    part_of,
    solved_block,
)
from palpo.physics.contract.stages import CLEAR, DELASSUS, DONE, MOVED, NOT_FINITE, PUSH, address_of
from palpo.physics.engine.cavities import gather_air
from palpo.physics.engine.joints import SLIDE
from palpo.physics.engine.rows import bounce, relative
from palpo.physics.engine.solve import call_solver, judge, open_step
from palpo.physics.engine.table import ask_all, offered, offers
from palpo.physics.exchange.atomics import view_square
from palpo.physics.numerics.arrays import all_finite
from palpo.physics.numerics.kernels import kernel

SOLVES = 3
"""Most solves of a step; what sinks in after the last is in the residual, and in the next step's set."""

NEWCOMERS = 64
"""Most contacts that join at once: of a flat face that lands all sink in, and few bear."""

PART = 0.5**0.5
"""Share of the solver's tolerance for the working set, and for what is outside: their squares add up."""


@kernel
def start_set(contacts, n, inside):
    """inside (n,) = whether a contact has a force so far, or always has one, as that of a shaft."""
    for k in range(n):
        f = contacts.force[k]
        inside[k] = f[0] != 0.0 or f[1] != 0.0 or f[2] != 0.0 or is_shaft(contacts, k)


@kernel
def admit(gap, n, inside):
    """What sinks in outside the set, by gap (n,), joins it: all of it, or NEWCOMERS evenly out of more."""
    sinking = 0
    for k in range(n):
        sinking += not inside[k] and gap[k] < 0.0
    share = 0
    for k in range(n):
        if inside[k] or not gap[k] < 0.0:
            continue
        share += NEWCOMERS
        if share >= sinking:
            share -= sinking
            inside[k] = True


@kernel
def members(n, inside, member):
    """member (m,) = numbers of the contacts inside; returns m."""
    m = 0
    for k in range(n):
        if inside[k]:
            member[m] = k
            m += 1
    return m


@kernel
def gather_matrix(whole, member, w):
    """w (3 m, 3 m) of the contacts member out of that of all contacts found."""
    m = w.shape[0] // 3
    for p in range(m):
        for i in range(3):
            source, out = whole[3 * member[p] + i], w[3 * p + i]
            for q in range(m):
                k = 3 * member[q]
                out[3 * q], out[3 * q + 1], out[3 * q + 2] = source[k], source[k + 1], source[k + 2]


@kernel
def sunk(w, r, first, last, gap, n, inside):
    """(|r - Proj(r - rho u)|, |r|) [N] over the contacts outside the set, of gaps (n,).

    That is their share of the natural map's residual of all n contacts; rho is that of w, and r is the force,
    of the set's rows from `first` to `last`.
    """
    trace, size, error = 0.0, 0.0, 0.0
    for i in range(first, last):
        trace += w[i, i]
        size += r[i] ** 2
    rho = (last - first) / trace if trace > 0.0 else 1.0
    for k in range(n):
        if not inside[k] and gap[k] < 0.0:
            error += (rho * gap[k]) ** 2
    return error**0.5, size**0.5


@kernel
def warm_start(e):
    """The forces of the last step, in the contacts' present axes and in their cones; none on joints."""
    contacts, first = e.contacts, e.joints.what.shape[0]
    for i in range(3 * first):
        e.r[i] = 0.0
    for i in range(3 * e.cavities.count[0]):  # who solves for pressures starts from them by itself
        e.r[3 * (first + contacts.count[0].found) + i] = 0.0
    for k in range(contacts.count[0].found):
        force, r = contacts.force[k], e.r[3 * (first + k) : 3 * (first + k) + 3]
        for i in range(3):
            axis = contacts.frame[k, i]
            r[i] = axis[0] * force[0] + axis[1] * force[1] + axis[2] * force[2]
        if is_shaft(contacts, k):
            r[0] = min(max(r[0], contacts.limits[k, 0]), contacts.limits[k, 1])
        else:
            project_cone(r, contacts.mu[k], r)


@kernel
def gather(e):
    """The working set's problem but for W: its rows, and the points of each body."""
    p, contacts, first = e.problem, e.contacts, e.joints.what.shape[0]
    m, cavities = members(contacts.count[0].found, e.inside, e.member), e.cavities.count[0]
    p.rows[0], p.rows[1] = 3 * first, 3 * (first + m + cavities)
    e.count[0].members = m
    p.shafts[0] = 0
    for b in range(e.bodies.unit.shape[0]):
        part_of(e, b).count[0] = 0
    for k in range(first + m + cavities):
        block = solved_block(e, k, m)
        for i in range(3):
            p.b[3 * k + i], p.r[3 * k + i] = e.b[3 * block + i], e.r[3 * block + i]
        if first <= k < first + m and is_shaft(contacts, block - first):
            limits = contacts.limits[block - first]
            p.limits[p.shafts[0], 0], p.limits[p.shafts[0], 1] = limits[0], limits[1]
            p.shafts[0] += 1
        elif first <= k < first + m:
            p.mu[k - first] = contacts.mu[block - first]
        for side in range(2):
            body = body_of(e, block, side)
            if body >= 0:
                copy_point(batch_of(e, body), e.at[block, side], part_of(e, body), k)


@kernel
def delassus(e):
    """W of the working set: the sum of what each body adds, or out of that which a frame brought; and what
    contacts give by themselves."""
    n = e.problem.rows[1]
    w = view_square(e.problem.w, n)
    if offers(e):
        gather_matrix(offered(e), e.member, w)
    else:
        w[:] = 0.0
        if ask_all(e, DELASSUS, e.bodies.part) != DONE:
            return NOT_FINITE
        for i in range(n):
            for j in range(i):
                w[j, i] = w[i, j]
    first = e.problem.rows[0]
    for k in range(e.count[0].members):
        row, c = first + 3 * k, e.member[k]
        for i in range(3):
            along = i == 0 and is_shaft(e.contacts, c)
            w[row + i, row + i] += e.contacts.give_along[c] if along else e.contacts.give[c]
    return DONE


@kernel
def _spare_what_cannot_move(p, contacts):
    """Contacts of points that are held on both sides bear nothing: no force could take them apart."""
    w = view_square(p.w, p.rows[1])
    for k in range(p.rows[0], p.rows[0] + 3 * contacts, 3):
        if w[k, k] == 0.0:
            p.b[k], p.b[k + 1], p.b[k + 2] = max(p.b[k], 0.0), 0.0, 0.0


@kernel
def _free_along(w, b, row, n):
    """A sheet's point has no force along its second tangent, the third of its rows."""
    for j in range(n):
        w[row + 2, j] = w[j, row + 2] = 0.0
    w[row + 2, row + 2] = w[row + 1, row + 1]
    b[row + 2] = 0.0


@kernel
def assemble(e):
    """The problem of the working set, joints eliminated; NOT_FINITE where a number of it is none."""
    gather(e)
    if not gather_air(e) or delassus(e) != DONE:
        return NOT_FINITE
    _spare_what_cannot_move(e.problem, e.count[0].members)
    p, m, n = e.problem, e.problem.rows[0], e.problem.rows[1]
    for k in range(m // 3):
        if e.joints.what[k] == SLIDE:
            free_row(view_square(p.w, n), p.b, 3 * k, n)
    for k in range(e.count[0].members):
        if e.contacts.sheet[e.member[k]]:
            _free_along(view_square(p.w, n), p.b, m + 3 * k, n)
    if not (all_finite(p.w[: n * n]) and all_finite(p.b[:n])):
        return NOT_FINITE
    blocks = e.joints.what.shape[0] + e.contacts.count[0].found + e.cavities.count[0]
    if not all_finite(e.b[: 3 * blocks]):
        return NOT_FINITE
    if m > 0 and eliminate(view_square(p.w, n), p.b, m, n, e.factor) != 0:
        return NOT_FINITE
    return DONE


@kernel
def _tolerance(e):
    """The solver's, of which the set and what is outside have a part each if anything is outside."""
    whole = e.count[0].members == e.contacts.count[0].found
    return e.solver.settings[0].tolerance if whole else PART * e.solver.settings[0].tolerance


@kernel
def solve(e):
    """Forces of the working set, and the pressures."""
    p, told = e.problem, e.solver.told[0]
    m, n = p.rows[0], p.rows[1]
    told.residual = 0.0
    told.tolerance = _tolerance(e)
    if n > m:
        pressing = e.cavities.count[0] > 0
        method = e.pressing[0] if pressing else e.solvers[e.solver.settings[0].method]
        if call_solver(method, address_of(p), address_of(e.solver)) != DONE:
            return NOT_FINITE
    if m > 0:
        recover(view_square(p.w, n), p.b, m, n, e.factor, p.r)
    return DONE


@kernel
def scatter(e):
    """r and u of all blocks: the set's, and no force on the others, whose u stays."""
    p, contacts, first = e.problem, e.contacts, e.joints.what.shape[0]
    for i in range(3 * (first + contacts.count[0].found)):
        e.r[i] = 0.0
    for k in range(p.rows[1] // 3):
        block = solved_block(e, k, e.count[0].members)
        for i in range(3):
            e.r[3 * block + i] = p.r[3 * k + i]
            if k >= first:
                e.u[3 * block + i] = p.u[3 * k + i]


@kernel
def push(e):
    """The forces found, on every body; contacts outside the set have none."""
    scatter(e)
    return push_all(e)


@kernel
def push_all(e):
    """The forces r of all blocks, on both bodies of each."""
    contacts, first = e.contacts, e.joints.what.shape[0]
    last = first + contacts.count[0].found
    for k in range(last + e.cavities.count[0]):
        for side in range(2):
            body = body_of(e, k, side)
            if body < 0:
                continue
            batch, i = batch_of(e, body), e.at[k, side]
            for c in range(3):
                batch.f[i, c] = (
                    batch.axes[i, 0, c] * e.r[3 * k]
                    + batch.axes[i, 1, c] * e.r[3 * k + 1]
                    + batch.axes[i, 2, c] * e.r[3 * k + 2]
                )
                if first <= k < last and side == 0:
                    contacts.force[k - first, c] = batch.f[i, c]
    if ask_all(e, CLEAR, e.bodies.batch) != DONE or ask_all(e, PUSH, e.bodies.batch) != DONE:
        return NOT_FINITE
    return DONE


@kernel
def _see_offsets(e):
    """gap and u of all contacts under the forces r, by W of them all, which a frame brought."""
    n = e.contacts.count[0].found
    set_offset(offered(e), e.b, e.r, e.u, 0, 3 * n)
    for k in range(n):
        e.gap[k] = e.u[3 * k]
    return DONE if all_finite(e.u[: 3 * n]) else NOT_FINITE


@kernel
def _see_gaps(e):
    """gap and u of the contacts outside the working set, under the forces found."""
    contacts, first, away = e.contacts, e.joints.what.shape[0], e.vectors[0]
    if offers(e):
        return _see_offsets(e)
    if ask_all(e, MOVED, e.bodies.batch) != DONE:
        return NOT_FINITE
    for k in range(contacts.count[0].found):
        if e.inside[k]:
            continue
        relative(e, first + k, contacts.body[k], 0, away)
        e.gap[k] = contacts.gap[k] + away[0] + bounce(e, k)
        e.u[3 * (first + k)] = e.gap[k]
        for i in range(1, 3):
            axis, slip = contacts.frame[k, i], contacts.offset[k]
            slid = axis[0] * slip[0] + axis[1] * slip[1] + axis[2] * slip[2]
            e.u[3 * (first + k) + i] = slid + away[i]
    return DONE


@kernel
def settled(e):
    """Whether what sinks in outside the set is within the solver's tolerance; the residual has it, too."""
    p, told = e.problem, e.solver.told[0]
    m, n = p.rows[0], p.rows[1]
    last = n - 3 * e.cavities.count[0]
    error, size = sunk(view_square(p.w, n), p.r, m, last, e.gap, e.contacts.count[0].found, e.inside)
    if error == 0.0:
        return True
    error = relative_error(error, size, asked_force(view_square(p.w, n), p.b, m, (last - m) // 3))
    told.residual = (told.residual**2 + error * error) ** 0.5
    return error <= _tolerance(e)


@kernel
def open_set(e):
    """The forces to start from, and the first working set of a step; DONE or NOT_FINITE."""
    contacts, n = e.contacts, e.contacts.count[0].found
    warm_start(e)
    open_step(e.solver)
    start_set(contacts, n, e.inside)
    if offers(e) and _see_offsets(e) != DONE:
        return NOT_FINITE
    if n <= e.solver.settings[0].at_once:
        e.inside[:n] = True
    admit(e.gap, n, e.inside)
    return DONE


@kernel
def respond(e, last):
    """Whether the forces pushed stand: DONE, or AGAIN where the working set has grown; NOT_FINITE."""
    n = e.contacts.count[0].found
    if e.count[0].members == n:
        return DONE
    if _see_gaps(e) != DONE:
        return NOT_FINITE
    if settled(e) or e.solver.told[0].flags != 0 or last:
        return DONE
    admit(e.gap, n, e.inside)
    return AGAIN


@kernel
def equilibrium(e):
    """Contact forces, and the bodies under them, of a working set that grows by what sinks in."""
    code = AGAIN
    if open_set(e) != DONE:
        return NOT_FINITE
    for left in range(SOLVES, 0, -1):
        if assemble(e) != DONE or solve(e) != DONE:
            return NOT_FINITE
        # a frame's W tells how all contacts yield: the bodies need to know the last forces alone
        scatter(e)
        if not offers(e) and push_all(e) != DONE:
            return NOT_FINITE
        code = respond(e, left == 1)
        if code != AGAIN:
            break
    if offers(e) and push_all(e) != DONE:
        return NOT_FINITE
    e.count[0].sweeps += e.solver.told[0].sweeps
    tell_statuses(e)
    return code


@kernel
def tell_statuses(e):
    """Which contacts are open, stick or slide under the forces found."""
    p, first, contacts = e.problem, e.problem.rows[0], e.contacts
    size = (p.rows[1] - first) // 3 - e.cavities.count[0]
    cones = size - p.shafts[0]  # the solver has told those of shafts
    judge(view_square(p.w, p.rows[1]), p.mu[:cones], p.r, p.u, first, e.vectors[0], p.status)
    for k in range(contacts.count[0].found):
        contacts.status[k] = OPEN
    for k in range(size):
        contacts.status[e.member[k]] = p.status[k]
