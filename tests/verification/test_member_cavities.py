"""Air between two soft bodies of a multi-rate scene: fields of full bodies, of their models, and frames."""

import numpy as np
import pytest

from palpo.app.runtime.pacing import rungs_of
from palpo.physics.contract.stages import ADOPT, BEGIN, DELASSUS, FREE
from palpo.physics.engine.cavities import make_cavities, take_cavities
from palpo.physics.exchange.buffer import reader_slot, writer_slot
from palpo.physics.exchange.cavity_frame import make_cavity_frame
from palpo.physics.gas.flood import thresholds
from palpo.physics.gas.law import OutsideAir
from palpo.physics.systems.multirate.krylov import AIR_PATIENCE
from palpo.physics.systems.multirate.lock_step import LockStep
from palpo.physics.systems.multirate.member_cavities import MemberCavities
from tests.contact.test_delassus import dense_body
from tests.engine.test_modal_kind import Loop
from tests.verification.small_scenes import small_scene

CUP = """
title = "cup on a block"
gravity = [0, 0, 0]

[rates]
low_hz = 100

[[bodies]]
name = "block"
kind = "tets"
geometry = { kind = "block", size = [0.05, 0.02, 0.05], divisions = [4, 2, 4] }
placement = { position = [0, -0.01, 0] }
material = { youngs_modulus = 60e3, poisson_ratio = 0.4, density = 1000, alpha = 0.0, beta = 0.002 }
FIXED

[[bodies]]
name = "cup"
kind = "tets"
geometry = { kind = "revolved", opening = 0.022, top = 0.01, height = 0.006, rim = 0.0025, GRID }
placement = { position = [0, 0.0004, 0] }
material = { youngs_modulus = 300e3, poisson_ratio = 0.4, density = 1070, alpha = 0.5, beta = 0.008 }

[[bodies]]
name = "handle"
kind = "rigid"
rate = "high"
geometry = { kind = "sphere", radius = 0.002 }
placement = { position = [0, 0.03, 0] }
mass = 0.02

[contact]
distance = 1e-4
ignore = [["handle", "cup"]]

[air]
cup = "cup"
partner = "block"
sealing = 1e-3
alarm = 3e-3

[tool]
body = "handle"
""".replace("GRID", "stem = 0.008, resolution = 76")
CLAMPED = CUP.replace("FIXED", "fixed = [{ box = [[-1, -0.0201, -1], [1, -0.0199, 1]] }]")
FREE_BLOCK = CUP.replace("FIXED", "")


class Field(Loop):
    """The engine's kind on one of the bodies, with the frame of the first cavity."""

    def __init__(self, text: str, kind: str, member: int) -> None:
        super().__init__(text, kind)
        self.member = self.scene.members[member]

    def of_field(self) -> int:
        """Global number of the cavity's field on the member."""
        air = self.scene.air
        assert air is not None and len(air.field) == 1
        return int(self.member.first + self.member.body.nodes + air.field[0])


@pytest.mark.parametrize("member", [0, 1], ids=["block", "cup"])
@pytest.mark.parametrize("kind", ["krylov", "monolithic"])
@pytest.mark.parametrize("text", [CLAMPED, FREE_BLOCK], ids=["clamped", "free"])
def test_wall_yields_as_that_of_the_full_body(text, kind, member):
    """W_pp = h^2 H_p A_h^-1 H_p^T and the free change of volume, in the models that the servo gets."""
    loop = Field(text, kind, member)
    body, generator = loop.member.body, np.random.default_rng(4)
    body.v[:] = 1e-4 * generator.standard_normal(body.v.shape)
    loop.send()
    servo = loop.body()
    loop.ask(servo, ADOPT)
    batch = loop.batch
    batch.count[0], batch.what[0] = 1, 3
    batch.slots[0], batch.weights[0], batch.axes[0] = (loop.of_field(), 0, 0), (1, 0, 0), np.diag([1, 0, 0])
    loop.problem.rows[:] = 0, 3
    loop.ask(servo, BEGIN)
    loop.ask(servo, FREE)
    loop.ask(servo, DELASSUS)
    loop.low.close()
    wall = loop.member.body.columns(np.array([loop.of_field() - loop.member.first]))[:, 0]
    assert np.abs(wall).max() > 0.0
    whole = dense_body(body, loop.h)
    expected = loop.h**2 * wall @ np.linalg.solve(whole, wall)
    # krylov: columns below 3e-6 of their norm are dropped
    assert loop.problem.w[0] == pytest.approx(expected, rel=1e-5)
    free = body.free_velocity(body.factor(loop.h), loop.h)
    assert batch.d[0, 0] == pytest.approx(loop.h * wall @ free, rel=1e-4, abs=1e-15)


def two_boxes() -> tuple[LockStep, MemberCavities]:
    """The scene at rest, cavities found."""
    lock = LockStep(small_scene(CLAMPED))
    air = lock.scene.air
    assert air is not None
    air.find()
    return lock, air


def test_walls_close_the_cavity():
    """Both gradients are of one closed surface: no net force, no net moment, the same volume elsewhere."""
    lock, air = two_boxes()
    lock.close()
    k, members = int(air.field[0]), list(air.members)
    walls = [m.body.wall[k] for m in members]
    size = sum(np.abs(w).sum() for w in walls)
    assert np.abs(sum(w.sum(axis=0) for w in walls)).max() <= 1e-12 * size
    moment = sum(np.cross(m.body.x, w).sum(axis=0) for m, w in zip(members, walls, strict=True))
    assert np.abs(moment).max() <= 1e-12 * 0.05 * size
    before = float(members[0].body.volume[k])
    for member in members:
        member.body.x += [1e-3, 2e-3, -1e-3]
    air.find()
    assert float(members[0].body.volume[air.field[0]]) == pytest.approx(before, rel=1e-9)


def test_air_that_the_servo_let_out_stays_out():
    """What the servo has made of the air is what the next frame hands on, as a share of one."""
    lock, air = two_boxes()
    lock.close()
    amount, volume = air.amount.copy(), np.array([air.walls[0].body.volume[air.field[0]]])
    assert amount[0] == pytest.approx(OutsideAir(102e3).amount(101325.0, volume[0]), rel=1e-9)
    air.enclosure.commit(air.identity, 0.5 * amount, volume)
    air.find()
    assert air.amount[0] == 0.5 * amount[0] and air.share[0] == 1.0
    frame = lock.high.link.frame
    f = int(writer_slot(lock.high.link.frame_control))
    air.write(frame, f)
    assert frame.cavities.count[f] == 1 and frame.cavities.identity[f, 0] == air.identity[0]


def test_a_cavity_that_the_servo_does_not_know_has_the_air_of_the_frame():
    """One that it knows keeps the servo's, but for the share that the frame tells."""
    frame, cavities = make_cavity_frame(3), make_cavities(4, (1e5, 2e5, 2.5e3))
    cavities.count[0], cavities.identity[:2] = 2, [7, 8]
    cavities.amount[:2], cavities.pressure[:2] = [3e-6, 5e-6], [0.6e5, 0.7e5]
    frame.count[1], frame.identity[1], frame.pressure[1] = 3, [9, 8, 10], 1e5
    frame.amount[1], frame.share[1] = [1e-6, 2e-6, 4e-6], [1.0, 0.5, 1.0]
    frame.fields[1], frame.active[1] = [[20, 25], [21, -1], [22, 27]], [False, True, False]
    frame.seeping[1] = np.arange(16.0)
    take_cavities(frame, 1, cavities, 5, 20)
    assert cavities.count[0] == 3 and cavities.identity[:3].tolist() == [9, 8, 10]
    assert cavities.amount[:3].tolist() == [1e-6, 0.5 * 5e-6, 4e-6]
    assert cavities.pressure[:3].tolist() == [1e5, 0.7e5, 1e5]
    assert cavities.body[:3].tolist() == [[5, 5], [5, -1], [5, 5]]
    assert cavities.slots[[0, 1, 2, 0, 2], [0, 0, 0, 1, 1], 0].tolist() == [0, 1, 2, 5, 7]
    assert cavities.active[:3].tolist() == [False, True, False]
    assert cavities.seeping[:16].tolist() == list(range(16))


def test_a_new_cavity_takes_no_field_of_another():
    """Else the servo would join its volume to where the other's was."""
    lock, air = two_boxes()
    lock.close()
    first = air.field.copy()
    air.identity = air.identity + 1000
    assert (air._fields(air.identity - 1000) != first).all()


@pytest.mark.parametrize("kind", ["krylov", "monolithic"])
def test_servo_keeps_the_law_of_gases_and_the_loop_its_bodies_together(kind):
    lock = LockStep(small_scene(CLAMPED), kind)
    place = lock.high.port.position.copy()
    trace = lock.run(np.tile(place, (60, 1)))
    cavities = lock.high.engine.cavities
    lock.close()
    assert len(trace["force"]) == 60 and cavities.count[0] == 1
    nrt = cavities.amount[0] * cavities.air[2]
    assert cavities.pressure[0] * cavities.volume[0] == pytest.approx(nrt, rel=1e-8)
    f = int(reader_slot(lock.high.link.frame_control))
    assert lock.high.link.frame.cavities.identity[f, 0] == cavities.identity[0]


def efforts(text: str) -> set:
    """Periods, columns and contacts that a slow machine may come to in a scene."""
    lock = LockStep(small_scene(text))
    rungs = rungs_of(lock.ratio, 1000.0, lock.low.spares, lock.low.slowest_hz)
    lock.close()
    return {(rung.period, rung.columns, rung.contacts) for rung in rungs}


def test_a_slow_machine_lowers_neither_the_rate_nor_the_columns_of_a_scene_with_air():
    without = CLAMPED[: CLAMPED.index("[air]")] + CLAMPED[CLAMPED.index("[tool]") :]
    assert efforts(CLAMPED) == {(10, 1.0, 1.0)}
    assert len(efforts(without)) > 1, "or the test shows nothing"


@pytest.mark.parametrize("limits", [(1e-4, 1e-3, 3e-3)])
def test_no_cavity_without_a_seal(limits):
    """A cup that is lifted beyond the sealing distance shuts nothing in."""
    scene = small_scene(CLAMPED)
    air = scene.air
    assert air is not None
    assert air.limits == thresholds(*limits)
    air.find()
    assert len(air.field) == 1
    air.members[0].body.x += [0.0, 5e-3, 0.0]
    air.find()
    assert len(air.field) == 0
    assert air.walls[0].body.wall.any(), "forces of the last frame's ticks still find the wall"
    air.find()
    assert not air.walls[0].body.wall.any()


def evacuated(more: str = "") -> LockStep:
    """The cup on the block, after three slow periods with a twentieth of its air gone."""
    lock = LockStep(small_scene(CLAMPED.replace("alarm = 3e-3", "alarm = 3e-3\n" + more)))
    proceed(lock, 60)
    lock.high.engine.cavities.amount[0] *= 0.95
    proceed(lock, 1)
    return lock


def proceed(lock: LockStep, ticks: int) -> None:
    trace = lock.run(np.tile(lock.high.port.position.copy(), (ticks, 1)))
    assert len(trace["force"]) == ticks


def open_ticks(lock: LockStep, ticks: int) -> list[bool]:
    """Of each of the next ticks, whether the pressure is just the atmosphere's; p V = n R T in all."""
    cavities, found = lock.high.engine.cavities, []
    for _ in range(ticks):
        proceed(lock, 1)
        nrt = cavities.amount[0] * cavities.air[2]
        assert cavities.pressure[0] * cavities.volume[0] == pytest.approx(nrt, rel=1e-8)
        found.append(bool(cavities.pressure[0] == cavities.air[0]))
    return found


def test_a_valve_is_open_while_the_button_is_down():
    lock = evacuated()
    cavities, buttons = lock.high.engine.cavities, lock.high.port.buttons
    assert cavities.pressure[0] < cavities.air[0]
    buttons[0] = 0b110
    assert not any(open_ticks(lock, 3)), "of other buttons"
    buttons[0] = 0b011
    assert all(open_ticks(lock, 25)), "over two frames"
    buttons[0] = 0
    assert not any(open_ticks(lock, 25))
    lock.close()


def test_a_valve_is_open_at_the_times_that_the_scene_gives():
    lock = evacuated("valve_open = [[0.065, 0.067], [0.07, 0.071]]\nvalve_button = 0")
    lock.high.port.buttons[0] = 1
    first = lock.made
    ticks = np.array(open_ticks(lock, 15))
    lock.close()
    np.testing.assert_array_equal(first + np.flatnonzero(ticks), [65, 66, 70])


def test_air_comes_in_where_the_seal_is_torn_between_two_frames():
    lock = evacuated()
    state = lock.side.built.detectors[-1].handle.state
    proceed(lock, 1)
    tight = state.gap[0]
    state.gap[0] = -1.0  # as if no contact were close
    torn = open_ticks(lock, 5)
    state.gap[0] = tight
    mended = open_ticks(lock, 5)
    lock.close()
    assert torn == [False, *4 * [True]] and mended == [True, *4 * [False]]


def test_a_seal_that_no_contact_made_when_the_frame_came_is_not_torn_by_contacts_that_come_and_go():
    lock = evacuated()
    state = lock.side.built.detectors[-1].handle.state
    proceed(lock, 1)
    tight = state.gap[0]
    state.sealed[0] = -1  # as if the frame had just come
    for gap in (-1.0, tight, -1.0):
        state.gap[0] = gap
        assert not any(open_ticks(lock, 2))
    lock.close()


def test_the_scene_waits_for_a_frame_that_is_late_rather_than_go_on_with_an_old_one():
    """A cavity's shape is that of its frame: with all of them a tenth of a second late a grip is lost.

    A frame that comes forty periods late is of a state at most two waits back: one for itself, one for the
    frame before.
    """
    lock = LockStep(small_scene(CLAMPED), durations=(1.0, 40.0))
    low, again = lock.low, []
    publish = low.publish

    def watched(tick: int, frame_tick: int | None = None) -> None:
        again.append(lock.made - low.tick)
        publish(tick, frame_tick)

    low.publish = watched
    calls = 42 * lock.ratio * 3
    trace = lock.run(np.tile(lock.high.port.position.copy(), (calls, 1)))
    lock.close()
    wait = max(round(AIR_PATIENCE[0] / lock.scene.numbers.dt), AIR_PATIENCE[1] * lock.ratio)
    assert len(trace["force"]) == calls and np.isfinite(trace["force"]).all()
    assert wait < max(again) <= 2 * wait < 40 * lock.ratio
    assert lock.made < calls
