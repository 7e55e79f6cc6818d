"""What a tick tells of itself: the tool for the low-rate loop, and all that a picture needs."""

from palpo.physics.contract.points import batch_of
from palpo.physics.exchange.buffer import publish, reader_slot, writer_slot
from palpo.physics.exchange.handle import handle_like
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.reduction.replay import add_work


@kernel
def _write_state(s, out, w):
    """The state after the tick into slot w of `out`."""
    out.tick[w] = s.engine.now[0]
    out.calls[w] = s.ticks[0].calls
    out.odometer[w] = s.search.odometer[0]
    for t in range(s.helds.shape[0]):
        held = held_of(s, t)
        tool, first = held.tool, held.frame[0]
        for k in range(tool.x.shape[0]):
            for i in range(3):
                out.x[w, first + k, i] = tool.x[k, i]
                out.v[w, first + k, i] = tool.v[k, i]
                out.w[w, first + k, i] = tool.w[k, i]
            for i in range(4):
                out.q[w, first + k, i] = tool.q[k, i]
    for i in range(3):
        out.target[w, i] = s.held.hold.target[i]
        out.target_v[w, i] = s.held.hold.target_v[i]
        out.target_w[w, i] = s.held.hold.target_w[i]
        out.force[w, i] = s.port.force[i]
        out.gravity[w, i] = s.held.chain.model.gravity[i]
    for i in range(4):
        out.target_q[w, i] = s.held.hold.target_q[i]
    contacts, e = s.engine.contacts, s.engine
    n = min(contacts.count[0].found, out.contact_point.shape[1])
    out.n_contacts[w] = n
    for c in range(n):
        out.contact_status[w, c] = contacts.status[c]
        batch, k = batch_of(e, contacts.body[c, 0]), e.at[e.joints.what.shape[0] + c, 0]
        for i in range(3):
            out.contact_force[w, c, i] = contacts.force[c, i]
            out.contact_point[w, c, i] = batch.x[k, i] + contacts.arm[c, 0, i]
    cavities = e.cavities
    out.n_cavities[w] = cavities.count[0]
    for k in range(cavities.count[0]):
        air = out.cavity_air[w, k]
        out.cavity[w, k] = cavities.identity[k]
        air[0], air[1], air[2] = cavities.amount[k], cavities.volume[k], cavities.pressure[k]
    for j in range(s.links.shape[0]):
        link = link_of(s, j)
        now = link.interface
        out.frame[w, j] = s.frames.in_force[j].frame
        for k in range(out.z.shape[2]):
            out.z[w, j, k] = now.z[k]
        for k in range(out.rate.shape[2]):
            out.rate[w, j, k] = now.rate[k]
        for b in range(out.centre.shape[2]):
            for i in range(3):
                out.centre[w, j, b, i] = now.centre[b, i]
            for i in range(4):
                out.orientation[w, j, b, i] = now.q[b, i]
        for b in range(out.velocity.shape[2]):
            for i in range(3):
                out.velocity[w, j, b, i] = now.velocity[b, i]
                out.spin[w, j, b, i] = now.spin[b, i]


@inlined
def held_of(s, t):
    """Tool t and the hand that holds it."""
    return handle_like(s.held, s.helds[t])


@inlined
def link_of(s, j):
    """What low loop j and the servo exchange."""
    return handle_like(s.link, s.links[j])


@kernel
def log_model(link, tick, h):
    """The reduced model of a loop's bodies at the end of a tick, and what forces have done to them."""
    log, state, frame = link.models, link.interface, link.frame
    f, row = reader_slot(link.frame_control), tick & (log.tick.shape[0] - 1)
    add_work(frame, f, state, h, log.total)
    log.tick[row], log.frame[row] = tick, frame.head[f].id
    for k in range(frame.head[f].n_modes):
        log.z[row, k], log.rate[row, k] = state.z[k], state.rate[k]
    for b in range(log.total.shape[0]):
        log.work[row, b] = log.total[b]
        for i in range(3):
            log.centre[row, b, i] = state.centre[b, i]
            log.velocity[row, b, i], log.spin[row, b, i] = state.velocity[b, i], state.spin[b, i]
        for i in range(4):
            log.q[row, b, i] = state.q[b, i]


@kernel
def publish_state(s):
    """The tool's state for each low loop, and once more for the picture."""
    for j in range(s.links.shape[0]):
        link = link_of(s, j)
        _write_state(s, link.state, writer_slot(link.state_control))
        publish(link.state_control)
    _write_state(s, s.shown, writer_slot(s.shown_control))
    publish(s.shown_control)
