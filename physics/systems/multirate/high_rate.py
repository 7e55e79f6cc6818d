"""What the servo of a multi-rate scene exchanges with its low loops, in a tick of the engine.

The tick (palpo.physics.engine.servo) takes the high-rate steps of 003, section IV-A, in their order:

    H1  each device's pose becomes its hold's target     engine.servo:aim
        the newest frames come into force                take_frames, here
    H2  free motion of the tool and the reduced bodies   engine.tick:begin
    H3  violation of attachments and contacts            engine.tick:find, engine.rows:free_motion
    H4  W = W_soft^dt + W_stiff^dt                       engine.equilibrium:assemble
    H5  the complementarity problem, joints exactly      engine.equilibrium:solve
    H6  corrected motion; forces and models are logged   engine.tick:end, log_step, here

and what each low loop and the picture read is published by `publish_state`.

The type of what a servo exchanges depends on dimensions and dtypes only, so that one compiled link, cached on
disk, serves every scene.
"""

from collections.abc import Sequence

import numpy as np

from palpo.physics.bodies.chain_models import rest_state, rigid_model
from palpo.physics.collision.topology import TOOL, CollisionShape, join_shapes
from palpo.physics.compliance.hold import make_hold
from palpo.physics.contract.contacts import batch_of
from palpo.physics.contract.links import ASTRAY, BOOK, FRAME, LOST, TELL, link
from palpo.physics.contract.stages import DONE, NOT_FINITE
from palpo.physics.engine.build import Bound
from palpo.physics.engine.frames import adopt, log_forces
from palpo.physics.engine.servo import TickState
from palpo.physics.engine.servo import make_servo as make_tick_state
from palpo.physics.exchange.ahead import Ahead
from palpo.physics.exchange.buffer import is_fresh, publish, reader_slot, writer_slot
from palpo.physics.exchange.constraint_frame import Capacity
from palpo.physics.exchange.frames import come_into_force, is_overdue
from palpo.physics.exchange.gains import Gains
from palpo.physics.exchange.handle import handle_like
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.reduction.interface_model import is_astray
from palpo.physics.reduction.replay import add_work
from palpo.physics.systems.multirate.assembly import LOG_POINTS, LOG_TICKS, ServoSide, make_side
from palpo.physics.systems.multirate.scene import Attachments, Loop, MovingPoints, Numbers, Scene, ToolPoints


def smallest_scene() -> Scene:
    """One rigid ball in empty space: the least that a tick can be run on."""
    none = np.zeros((0, 3), np.int32)
    shape = CollisionShape(1, none, np.array([[0, 0]], np.int32), 0.01, TOOL)
    topology, _ = join_shapes([shape])
    moving = MovingPoints(
        np.zeros(0, np.int32), np.zeros((0, 1, 3)), np.zeros((0, 1, 4)), np.ones(1, np.int64)
    )
    return Scene(
        names=["ball"],
        topology=topology,
        rest=np.zeros((1, 3)),
        members=[],
        model=rigid_model(0.03, 1e-6 * np.eye(3)),
        tool=rest_state(np.zeros((1, 3)), np.array([[1.0, 0.0, 0.0, 0.0]])),
        hold=make_hold(0, False, True, Gains(500.0, 1.0, 1.0, 1e-3)),
        tool_points=ToolPoints(np.array([0, 1]), np.zeros(1, np.int32), np.zeros((1, 3))),
        moving=moving,
        script=Ahead(lambda first, stop: (), 1, (), moving.known),
        attachments=Attachments(
            np.zeros(0, np.int32), np.zeros((0, 2, 3), np.int32), np.zeros((0, 2, 3)), np.zeros((0, 4)),
            np.zeros((0, 3)), np.zeros(0, np.int32),
        ),
        mu=np.zeros((1, 1)),
        ignored=frozenset(),
        numbers=Numbers(dt=1e-3, ratio=20),
        capacity=Capacity(slots=1, near=1, modes=1, pairs=1, contacts=1, points=1, bodies=1, all_bodies=1),
    )  # fmt: skip


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
    for k in range(s.incised.shape[0]):
        out.incised[w, k].inside, out.incised[w, k].work = s.incised[k].inside, s.incised[k].work
    for k in range(s.inserted.shape[0]):
        inside, told = s.inserted[k], out.inserted[w, k]
        told.count, told.plan = inside.count, inside.plan
        told.depth, told.inside = inside.depth, inside.inside
        for c in range(inside.count):
            for i in range(3):
                out.path[w, k, c, i] = s.path[k, c, i]
        for i in range(3):
            told.point[i], told.weight[i] = inside.point[i], inside.weight[i]
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


@kernel
def _astray(s):
    """LOST if a low loop's model went astray; its wait is counted, where its frame is not overdue besides."""
    code = DONE
    for j in range(s.links.shape[0]):
        one = link_of(s, j)
        modes = one.frame.head[reader_slot(one.frame_control)].n_modes
        if is_astray(one.interface.rate, modes) and not is_fresh(one.frame_control):
            s.frames.in_force[j].waited += 0 if is_overdue(s.frames, j, s.ticks[0].done) else 1
            code = LOST
    return code


@kernel
def take_frames(s):
    """The newest frames, brought to the present by replaying the forces that they do not contain."""
    if adopt(s.engine) != DONE:
        return NOT_FINITE
    replayed = 0
    for j in range(s.links.shape[0]):
        one = link_of(s, j)
        told = one.points.frame[0]
        replayed += told.replayed
        if told.fresh == 1:
            f = reader_slot(one.frame_control)
            come_into_force(s.frames, j, f, s.ticks[0])
            if j == 0:
                _take_settings(s, f)
    s.port.status[0].replayed = replayed
    return DONE


@kernel
def _take_settings(s, f):
    """What the operator may have changed since the last frame of the first loop, which carries it."""
    frame = s.link.frame
    settings, solver = frame.settings[f], s.engine.solver.settings[0]
    solver.tolerance, solver.sweeps = settings.tolerance, settings.sweeps
    s.held.hold.gains[0] = settings.hold
    for t in range(s.helds.shape[0]):
        for i in range(3):
            held_of(s, t).chain.model.gravity[i] = frame.gravity[f, i]
    for a in range(s.mu.shape[0]):
        for b in range(s.mu.shape[1]):
            s.mu[a, b] = frame.friction[f, a, b]


@kernel
def log_step(s):
    """What the step's forces were, and where they have brought the models: for those who integrate."""
    for j in range(s.links.shape[0]):
        one = link_of(s, j)
        log_model(one, s.engine.now[0] - 1, s.engine.step[0])
        log_forces(s.engine, one.body[0], one.log)


@kernel
def tell(s):
    """The state for the low loops and the picture, and how deep bodies are in each other [m]."""
    depth = 0.0
    for j in range(s.searches.shape[0]):
        depth = max(depth, handle_like(s.search, s.searches[j]).depth[0])
    s.port.info[0].depth = depth
    publish_state(s)


@link(make_side(smallest_scene()).high)
def multirate_link(stage, s, h):
    """The stages of palpo.physics.contract.links."""
    if stage == ASTRAY:
        return _astray(s)
    if stage == FRAME:
        return take_frames(s)
    if stage == BOOK:
        log_step(s)
    elif stage == TELL:
        tell(s)
    return DONE


def make_servo(
    scene: Scene,
    loops: Sequence[Loop] | None = None,
    log_ticks: int = LOG_TICKS,
    log_points: int = LOG_POINTS,
) -> tuple[TickState, ServoSide]:
    """The servo of a scene at tick 0, and what it exchanges; loops: the low loops, one alone if not given."""
    side = make_side(scene, loops, log_ticks, log_points)
    links = [Bound.bind(multirate_link, side.high)]
    return make_tick_state(side.high.engine, side.grips, links, side.high.ticks, side.high.frames), side
