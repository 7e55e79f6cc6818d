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
"""

from collections.abc import Sequence

from palpo.physics.contract.links import ASTRAY, BOOK, FRAME, LOST, TELL, link
from palpo.physics.contract.stages import DONE, NOT_FINITE
from palpo.physics.engine.build import Bound
from palpo.physics.engine.frames import adopt, log_forces
from palpo.physics.engine.servo import TickState
from palpo.physics.engine.servo import make_servo as make_tick_state
from palpo.physics.exchange.buffer import is_fresh, reader_slot
from palpo.physics.exchange.frames import come_into_force, is_overdue
from palpo.physics.exchange.handle import handle_like
from palpo.physics.numerics.kernels import kernel
from palpo.physics.reduction.interface_model import is_astray
from palpo.physics.systems.multirate.assembly import LOG_POINTS, LOG_TICKS, ServoSide, make_side
from palpo.physics.systems.multirate.scene import Loop, Scene
from palpo.physics.systems.multirate.smallest import smallest_scene
from palpo.physics.systems.multirate.state_report import held_of, link_of, log_model, publish_state


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
