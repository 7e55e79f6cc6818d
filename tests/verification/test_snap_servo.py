"""The servo of a snap connector: the off-line step tick by tick, a passive coupling, settings, picture."""

import ctypes
import math
from functools import lru_cache

import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

from palpo.physics.bodies.admittance import make_plug
from palpo.physics.collision.distance_field import exact_field, grid_field
from palpo.physics.engine.servo import servo_tick, tick, tick_data
from palpo.physics.exchange.buffer import acquire, writer_slot
from palpo.physics.exchange.frames import hand_over
from palpo.physics.exchange.port import OK, UNSET
from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.kernels import kernel
from palpo.physics.systems.snap.connectors.registry import generate
from palpo.physics.systems.snap.insertion import Insertion
from palpo.physics.systems.snap.model import SnapModel
from palpo.physics.systems.snap.numerics import Numerics, default_settings
from palpo.physics.systems.snap.servo import gains_of, make_servo

DT, SPEED = 1e-3, 0.1
PRESSED = 6.5e-3
"""Travel on the wedge, well before the click [m]."""


@lru_cache
def connector(kind="two-prong"):
    return generate(kind)


@lru_cache
def field(kind="two-prong"):
    return exact_field(connector(kind).plug, connector(kind).interference + 2e-3)


def make(substeps=1, kind="two-prong", **numerics):
    """(model, what its servo exchanges, the servo's handle) of model 4."""
    given = {"orders": (6, 25), "step": DT / substeps} | numerics
    model = SnapModel(connector(kind), Numerics(**given), field(kind))
    servo, side = make_servo(model, substeps)
    return model, side, tick_data(servo)


def way(model, travel=None, n=None):
    """The plug's path from rest, one position a tick."""
    c = model.connector
    travel = c.stroke if travel is None else travel
    n = round(travel / (SPEED * DT)) if n is None else n
    return model.start + np.linspace(0.0, travel, n + 1)[:, None] * c.push


def lead(handle, positions, orientations=None):
    """Forces (n, 3) and moments on the hand, one row a tick, shape (n, 6)."""
    felt, port = [], handle.state.port
    for k, p in enumerate(positions):
        port.position[:] = p
        if orientations is not None:
            port.orientation[:] = orientations[k]
        assert tick(handle) == OK
        felt.append(np.concatenate([port.force, port.torque]))
    return np.array(felt)


@pytest.mark.parametrize("substeps", [1, 3])
def test_the_tick_is_the_off_line_step_bit_for_bit(substeps):
    model, _, handle = make(substeps)
    path = way(model)
    felt = lead(handle, path)
    other, _, _ = make(substeps)
    push = Insertion(other, SPEED)
    fine = np.repeat(path, substeps, axis=0)
    for k in range(1, len(path)):
        for j in range(substeps - 1):
            fine[substeps * k + j] = fine[substeps * k + j - 1] + (path[k] - path[k - 1]) / substeps
    s = push.follow(fine)
    hand = sum(s.hand[j::substeps] / substeps for j in range(substeps))
    if substeps == 1:
        assert np.array_equal(felt, hand) and np.array_equal(model.coordinates, other.coordinates)
    # the servo adds its steps up: a rounding apart until the click, which amplifies it
    k = int(0.8 * np.argmax(-felt[:, 1]))
    np.testing.assert_allclose(felt[:k], hand[:k], atol=1e-6 * np.abs(felt).max())
    assert np.abs(felt).max() > 30.0


def test_a_connector_of_one_prong_runs_in_the_same_compiled_tick():
    model, _, handle = make(kind="lan")
    felt = lead(handle, way(model, n=150))
    assert len(model.prongs) == 1 and np.abs(felt[:, :3]).max() > 0.1


def test_the_work_of_the_hand_is_its_force_on_its_way():
    """So that the coupling is passive: what the books say that the target gave, the hand gave."""
    model, _, handle = make()
    path = np.concatenate([way(model), way(model)[::-1]])
    angles = 0.01 * np.sin(0.02 * np.arange(len(path)))
    turn = np.zeros((len(path), 4))
    turn[:, 0], turn[:, 3] = np.cos(0.5 * angles), np.sin(0.5 * angles)
    felt = lead(handle, path, turn)
    given = -np.sum(felt[1:, :3] * np.diff(path, axis=0)) - felt[1:, 5] @ np.diff(angles)
    assert given == pytest.approx(model.state.plug.motion.work["target"][0], rel=1e-9) and given > 1e-3


def test_a_run_is_repeated_bit_for_bit():
    runs = []
    for _ in range(2):
        model, _, handle = make()
        runs.append((lead(handle, way(model)), model.coordinates))
    assert np.array_equal(runs[0][0], runs[1][0]) and np.array_equal(runs[0][1], runs[1][1])


def test_the_c_callback_is_the_tick():
    function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(servo_tick.address)
    (model, _, handle), (_model, _, other) = make(), make()
    one, two = handle.state, other.state
    for p in way(model)[::3]:
        lead(handle, [p])
        two.port.position[:] = p
        assert function(other.address) == OK
        assert np.array_equal(one.port.force, two.port.force)
    with pytest.raises(TypeError, match="not laid out as the compiled function expects"):
        tick_data(one._replace(grips=one.grips.astype(np.float32)))


@kernel
def run_ticks(servo, positions):
    """A tick for each of positions (n, 3); how many were well."""
    for k in range(positions.shape[0]):
        for i in range(3):
            servo.port.position[i] = positions[k, i]
        if tick(servo) != OK:
            return k
    return positions.shape[0]


@pytest.mark.parametrize("clusters", [4, 0])
def test_a_tick_allocates_nothing(clusters):
    """One array is passed to the compiled loop, whether it makes one tick or all, the click among them."""
    model, _, handle = make(clusters=clusters, spacing=2e-3)
    path = way(model)
    run_ticks(handle, path[:1])
    counts = []
    _nrt_python.memsys_enable_stats()
    try:
        for part in (path[:1], path):
            before = rtsys.get_allocation_stats().alloc
            assert run_ticks(handle, part) == len(part)
            counts.append(rtsys.get_allocation_stats().alloc - before)
    finally:
        _nrt_python.memsys_disable_stats()
    assert counts == [1, 1] and model.state.books[0]["friction"] < -1e-3


def send(side, values, gains, identity, live=UNSET):
    slot = int(writer_slot(side.frames.control[0]))
    side.settings.value[slot], side.settings.gains[slot] = values[0], gains
    hand_over(side.frames, 0, identity, live=live)


def test_settings_act_at_the_next_tick_and_are_named_by_the_status():
    model, side, handle = make()
    path = way(model, PRESSED)
    before = lead(handle, path)[-1]
    values, gains = default_settings(connector(), model.numerics), gains_of(model.state.plug.model)
    assert handle.state.port.status["frame"][0] == 0 and math.isnan(handle.state.port.live["force_scale"][0])
    values["friction"], values["clusters"] = 0.5, 2
    send(side, values, gains, 7, (0.06, 3.0, 1.0))
    further = path[-1] + np.arange(1, 11)[:, None] * (path[-1] - path[-2])
    after = lead(handle, further)
    assert handle.state.port.status["frame"][0] == 7 and handle.state.port.live[0].item() == (0.06, 3.0, 1.0)
    assert model.state.engine.contacts.count[0]["found"] <= 2 * len(model.prongs)
    # (tan 45 + mu) / (1 - mu tan 45) doubles from 0.163 to 0.5; a bent prong leans out of the way
    assert after[-1, 1] > 1.6 * before[1] * (further[-1] - path[0])[1] / (path[-1] - path[0])[1]


def test_other_gains_act_at_once_and_the_books_still_balance():
    """Half the gains: the plug lags farther, and what the hold loses is work of the target."""
    model, side, handle = make()
    lead(handle, way(model, PRESSED))
    s, a = model.state, connector().admittance

    def balance():
        assert tick(handle) == OK
        b = s.books[0]
        energy = b["kinetic"] + b["elastic"] + b["coupling"] + b["plug"]
        return (
            energy
            - b["normal"]
            - b["friction"]
            - b["target"]
            + b["damping"]
            + s.plug.motion.work["damping"][0]
        )

    start = balance()
    plug, _ = make_plug(0.5 * a.mass, 0.5 * a.damping, 0.5 * a.stiffness, DT)
    send(side, default_settings(connector(), model.numerics), gains_of(plug), 1)
    for _ in range(100):
        assert balance() == pytest.approx(start, abs=1e-9 * s.books[0]["elastic"])
    assert np.array_equal(gains_of(s.plug.model), gains_of(plug))
    lag = s.plug.motion.position - handle.state.port.position
    np.testing.assert_allclose(handle.state.port.force, 0.5 * a.stiffness[0] * lag, rtol=0.02, atol=0.05)
    assert lag[1] > 1e-4


def test_the_picture_shows_the_prongs_the_plug_and_their_contacts():
    model, side, handle = make()
    felt = lead(handle, way(model, PRESSED))
    picture, (slot, fresh) = side.picture, acquire(side.picture_control)
    done = side.ticks[0]["done"]
    assert (fresh and picture.tick[slot] == done - 1) or picture.tick[slot] == done
    n = picture.n_contacts[slot]
    points, forces = picture.contact_point[slot, :n], picture.contact_force[slot, :n]
    np.testing.assert_allclose(forces.sum(axis=0), picture.force[slot], atol=1e-12)
    np.testing.assert_array_equal(handle.state.port.info["total"][0], picture.force[slot])
    np.testing.assert_array_equal(handle.state.port.info["held"][0], picture.position[slot])
    assert 0 < handle.state.port.status["contacts"][0] <= n
    np.testing.assert_array_equal(side.more.hand[slot], felt[-1])
    # the surfaces that the slow loop makes of it: the prongs are spread, and touch where contacts press
    nodes = model.positions(side.more.coordinates[slot])
    spread = [(x - part.mesh.nodes)[:, 0] for x, part in zip(nodes, connector().prongs, strict=True)]
    assert spread[0].min() < -1e-3 and spread[1].max() > 1e-3
    pressed = points[np.linalg.norm(forces, axis=1) > 1.0]
    nearest = [min(np.linalg.norm(x - p, axis=1).min() for x in nodes) for p in pressed]
    # contacts lie between nodes that are at most an edge of 8 mm apart
    assert len(pressed) and max(nearest) < 4e-3


def test_another_kind_of_distance_runs_in_the_same_compiled_tick():
    """A grid errs by what an edge turns in a cell of 0.4 mm: some percent of the force."""
    exact, grid = make(), grid_field(connector().plug, 4e-3, 4e-4)
    model = SnapModel(connector(), Numerics(orders=(6, 25)), grid)
    servo, _ = make_servo(model)
    path = way(model, PRESSED)
    felt, same = lead(tick_data(servo), path), lead(exact[2], path)
    assert felt[-1, 1] == pytest.approx(same[-1, 1], rel=0.05) and felt[-1, 1] > 10.0


def test_a_pose_that_is_no_number_is_reported():
    model, _, handle = make()
    lead(handle, [model.start])
    handle.state.port.position[0] = math.nan
    assert tick(handle) != OK


def test_a_tick_without_a_step_is_refused():
    with pytest.raises(InputError, match="a tick of 0 steps"):
        make_servo(make()[0], substeps=0)
