"""The quasi-static servo: the off-line method tick by tick, the coupling in series, determinism, settings."""

import ctypes
import math

import numpy as np
import pytest
from numba import carray, cfunc, types
from numba.core.runtime import _nrt_python, rtsys
from numpy.lib.recfunctions import structured_to_unstructured as numbers
from scipy.spatial.transform import Rotation

from palpo.physics.bodies.quasistatic import QuasistaticBody
from palpo.physics.contact.laws import project_cone
from palpo.physics.contact.problem import Stop
from palpo.physics.contact.solvers.relaxation import PHYSICAL, RELATIVE
from palpo.physics.engine.build import Bound
from palpo.physics.engine.servo import servo_tick, tick, tick_data
from palpo.physics.exchange.buffer import acquire, writer_slot
from palpo.physics.exchange.frames import hand_over
from palpo.physics.exchange.gains import Gains
from palpo.physics.exchange.handle import Handle
from palpo.physics.exchange.port import OK, SOLVE_DIVERGED, STATUS, SWEEPS_SPENT, TIME_SPENT, UNSET
from palpo.physics.exchange.quasistatic_frame import (
    ANDERSON,
    GAUSS_SEIDEL,
    MAXIMAL_DISSIPATION,
    NEWTON,
    UZAWA_GLOBAL,
    UZAWA_LOCAL,
)
from palpo.physics.fem.material import Material
from palpo.physics.numerics.arrays import copy
from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.kernels import kernel
from palpo.physics.systems.hapco.detection import Detection
from palpo.physics.systems.hapco.servo import BodyPair, Hold, default_settings, hapco_link, make_servo
from palpo.physics.systems.hapco.tick import whole_matrix
from palpo.studies.reference.conjugate_gradient_body import ConjugateGradientBody
from palpo.studies.reference.interaction import Interaction
from tests.verification.hapco_bench import STIFF, TISSUE, bodies, bottom

EVERY = math.inf
DT = 1e-3
GAINS = Gains(400.0, 2.0, 0.5, 1e-3)


def servo(vertices=None, hold=None, tolerance=1e-12, sweeps=100000, mu=0.3, clock=0, two=None, live=None):
    """(state, its handle) of the two blocks; every vertex of the bottom a contact."""
    above, below = two or bodies()
    hold = hold or Hold()
    settings = default_settings(mu, tolerance, sweeps, collision=EVERY, gains=hold.gains)
    for entry, value in (live or {}).items():
        settings[entry] = value
    detection = Detection(bottom() if vertices is None else vertices, tolerance=EVERY, edges=False)
    ticks, state = make_servo(BodyPair(above, below, detection, hold, settings, DT, clock=clock))
    return state, tick_data(ticks)


@kernel
def run_along(s, positions, forces):
    """A tick for each of positions (n, 3) [m], the feedback to forces (n, 3) [N]; how many were well."""
    for k in range(positions.shape[0]):
        copy(positions[k], s.port.position)
        if tick(s) != OK:
            return k
        copy(s.port.force, forces[k])
    return positions.shape[0]


def lead(state, handle, position, orientation=(1.0, 0.0, 0.0, 0.0)):
    """One tick with the hand there; the force on it."""
    state.port.position[:] = position
    state.port.orientation[:] = orientation
    assert tick(handle) == OK
    return state.port.force.copy()


def start(state):
    return state.mobile.frame.now.position.copy()


def press_and_slide(centre, n=40, depth=1e-3, way=3e-3):
    """Down, along x and back up to where nothing touches, n ticks each."""
    t = np.linspace(0.0, 1.0, n)[:, None]
    down, along = np.array([0.0, -depth, 0.0]), np.array([way, 0.0, 0.2 * way])
    up = np.array([0.0, 1e-3, 0.0])
    return centre + np.concatenate([t * down, down + t * along, down + along + t * (up - down)])


@pytest.mark.parametrize("gravity", [(0.0, 0.0, 0.0), (0.0, -9.81, 0.0)])
def test_the_tick_is_the_flexibility_method_for_a_direct_hold(gravity):
    """Same kernels, same forces along a path with friction and rotation, as far as the solver is exact.

    Sliding starts and ends at other sweeps, which solve to 1e-12; nothing else differs.
    """
    state, handle = servo(two=bodies(gravity=gravity))
    above, below = bodies(gravity=gravity)
    hapco = Interaction(
        above, below, Detection(bottom(), tolerance=EVERY, edges=False), 0.3, stop=Stop(1e-12, 100000)
    )
    largest = 0.0
    for k, p in enumerate(press_and_slide(start(state))):
        q = np.roll(Rotation.from_rotvec((0.0, 5e-4 * k, 1e-4 * k)).as_quat(), 1)
        force, s = lead(state, handle, p, q), hapco.step(p, q)
        largest = max(largest, np.linalg.norm(s.force))
        np.testing.assert_allclose(force, s.force, atol=1e-8 * largest + 1e-15)
        np.testing.assert_allclose(state.port.torque, s.torque, atol=1e-9 * largest + 1e-15)
        np.testing.assert_allclose(state.mobile_x, above.positions(above.surface_nodes), atol=1e-11)
        np.testing.assert_allclose(state.fixed_x, below.positions(below.surface_nodes), atol=1e-11)
        assert state.port.status["contacts"][0] == s.n_contacts - s.n_open
    assert largest > 0.1 and not s.force.any()


@pytest.mark.parametrize("direct", [True, False])
def test_a_hand_that_moves_freely_feels_nothing(direct):
    state, handle = servo(hold=Hold(direct=direct, gains=GAINS))
    centre = start(state) + np.array([0.0, 5e-3, 0.0])
    for k in range(50):
        turn = np.roll(Rotation.from_rotvec((0.0, 0.02 * k, 0.01 * k)).as_quat(), 1)
        assert not lead(state, handle, centre + np.array([2e-4 * k, 1e-4 * k, 0.0]), turn).any()
        assert not state.port.torque.any()


def test_a_coupling_adds_its_compliance_in_series():
    """At rest 1 / (1 / k + W), and with an arm a about the frame 1 / (1 / k + a^2 / k_turn + W)."""
    for node, arm in ((4, 0.0), (1, 6e-3)):
        state, handle = servo(bottom()[node : node + 1], Hold(direct=False, gains=GAINS), mu=0.0)
        depth, centre = 1e-7, start(state)
        for _ in range(200):
            force = lead(state, handle, centre - np.array([0.0, depth, 0.0]))
        w_contact = 1.0 / _stiffness_held_directly(node)
        stiffness = 1.0 / (1.0 / GAINS[0] + arm**2 / GAINS[2] + w_contact)
        # pressed off its axis the vertex slides by some 1e-7 m, of the 6e-3 m to the next node
        assert force[1] / depth == pytest.approx(stiffness, rel=1e-5)
        # the coupling's own force is what the hand feels
        pull = GAINS[0] * (state.hand.position - state.mobile.frame.now.position)
        np.testing.assert_allclose(pull, -force, atol=1e-9 * force[1])
        turn = GAINS[2] * state.mobile.frame.error[3:]
        np.testing.assert_allclose(turn, -state.port.torque, atol=1e-5 * force[1] * max(arm, 1e-3))


def _stiffness_held_directly(node):
    state, handle = servo(bottom()[node : node + 1], mu=0.0)
    return lead(state, handle, start(state) - np.array([0.0, 1e-6, 0.0]))[1] / 1e-6


def test_the_damping_is_that_of_backward_euler():
    """In free motion what the frame lags decays by (b / h) / (k + b / h) a tick, without force."""
    state, handle = servo(hold=Hold(direct=False, gains=GAINS))
    high = start(state) + np.array([0.0, 5e-3, 0.0])
    lead(state, handle, high)
    state.mobile.frame.error[:3] = 1e-4, 0.0, -2e-4
    state.mobile.frame.error[3:] = 0.0
    state.mobile.frame.now.position[:] = state.hand.position - state.mobile.frame.error[:3]
    share = (GAINS[1] / DT) / (GAINS[0] + GAINS[1] / DT)
    for k in range(1, 6):
        lead(state, handle, high)
        np.testing.assert_allclose(
            state.mobile.frame.error[:3], np.array([1e-4, 0.0, -2e-4]) * share**k, rtol=1e-9, atol=1e-17
        )


def test_the_coupled_hand_feels_the_contacts_sum_and_moment():
    state, handle = servo(hold=Hold(direct=False, gains=GAINS), mu=0.5)
    for p in press_and_slide(start(state))[:80]:
        force = lead(state, handle, p)
    picture, slot = state.picture, acquire(state.picture_control)[0]
    n = picture.n_contacts[slot]
    forces, points = picture.contact_force[slot, :n], picture.contact_point[slot, :n]
    assert np.linalg.norm(force) > 0.05
    np.testing.assert_allclose(forces.sum(axis=0), force, atol=1e-15)
    np.testing.assert_allclose(state.port.info["total"][0], force)
    moment = np.cross(points - picture.position[slot], forces).sum(axis=0)
    np.testing.assert_allclose(state.port.torque, moment, atol=1e-15)
    np.testing.assert_array_equal(state.port.info["held"][0], picture.position[slot])
    np.testing.assert_array_equal(state.surface[slot], np.concatenate([state.mobile_x, state.fixed_x]))
    # nothing sinks in beyond what the linearised rotation of a tick leaves
    assert state.port.info["depth"][0] < 1e-9


def record(state, handle, path):
    """Every output of every tick."""
    rows = []
    for p in path:
        lead(state, handle, p)
        port = state.port
        rows.append(np.concatenate([port.force, port.torque, numbers(port.info)[0], numbers(port.status)[0]]))
    return np.array(rows)


def column(rows, name):
    """An entry of the status in such rows."""
    return rows[:, STATUS.names.index(name) - len(STATUS.names)].astype(int)


def test_lock_step_repeats_bit_for_bit():
    runs = [servo(tolerance=1e-4, sweeps=200, hold=Hold(direct=False, gains=GAINS)) for _ in range(2)]
    first, second = (record(*run, press_and_slide(start(run[0]))) for run in runs)
    assert np.array_equal(first, second) and np.abs(first[:, 1]).max() > 0.05


@cfunc(types.int32(types.CPointer(types.int64)))
def slow_clock(words):
    """A machine on which every look at the clock comes 0.2 ms after the last, every fifth 0.7 ms."""
    block = carray(words, (8,))
    block[1] += 1
    block[0] += 700_000 if block[1] % 5 == 0 else 200_000
    return 0


@pytest.mark.parametrize("solver", [ANDERSON, NEWTON, UZAWA_GLOBAL])
def test_a_tick_whose_time_ran_out_is_repeated_by_its_sweeps(solver):
    """The cap is of time; what a recording keeps of it is the sweeps made, and they are all it takes."""
    state, handle = servo(
        tolerance=1e-10, clock=slow_clock.address, live={"solver": solver, "time_cap": 5e-4}
    )
    path = press_and_slide(start(state))
    lived = record(state, handle, path)
    flags, sweeps = column(lived, "flags"), column(lived, "sweeps")
    capped = (flags & TIME_SPENT) != 0
    assert capped.any() and not capped.all() and state.engine.solver.told["time_caps"] == capped.sum()
    state, handle = servo(tolerance=1e-10, live={"solver": solver})
    for p, row, count, cut in zip(path, lived, sweeps, capped, strict=True):
        state.live["sweeps"] = count if cut else 100000
        lead(state, handle, p)
        assert np.array_equal(state.port.force, row[:3]) and state.port.info["residual"][0] == row[6]


@pytest.mark.parametrize("solver", [ANDERSON, UZAWA_GLOBAL, UZAWA_LOCAL])
def test_sweeps_that_run_out_are_counted_and_the_force_is_the_best_so_far(solver):
    state, handle = servo(tolerance=1e-14, sweeps=3, live={"solver": solver})
    lead(state, handle, start(state) - np.array([0.0, 1e-3, 0.0]))
    assert state.port.status["flags"][0] & SWEEPS_SPENT and state.port.status["sweeps"][0] == 3
    assert 0.0 < state.port.info["residual"][0] < 0.5 and state.port.force[1] > 0.0


@pytest.mark.parametrize("solver", [NEWTON, GAUSS_SEIDEL, MAXIMAL_DISSIPATION])
def test_every_solver_that_may_be_chosen_finds_the_same_force(solver):
    """Two answers of residual e differ by e times a condition number, of some 1e2 on this bench; plain sweeps
    end by what one of them changes, which may be a hundredth of the residual."""
    (state, one), (other_state, other) = (
        servo(tolerance=1e-10),
        servo(tolerance=1e-10, live={"solver": solver}),
    )
    largest = 0.0
    for p in press_and_slide(start(state))[::4]:
        force, same = lead(state, one, p), lead(other_state, other, p)
        largest = max(largest, np.linalg.norm(force))
        np.testing.assert_allclose(same, force, atol=1e-5 * largest)
    assert largest > 0.1 and not other_state.port.status["flags"][0]


@pytest.mark.parametrize(("code", "reach"), [(UZAWA_GLOBAL, "global"), (UZAWA_LOCAL, "local")])
def test_uzawa_in_the_servo_is_the_off_line_method(code, reach):
    """Two answers of residual e differ by e times a condition number, of some 1e2 on this bench."""
    tolerance, largest = 1e-10, 0.0
    state, handle = servo(tolerance=tolerance, live={"solver": code})
    above, below = bodies()
    hapco = Interaction(
        above, below, Detection(bottom(), tolerance=EVERY, edges=False), 0.3,
        f"uzawa-{reach}-bipotential-rho_min", stop=Stop(tolerance, 100000),
    )  # fmt: skip
    for p in press_and_slide(start(state))[::4]:
        force, s = lead(state, handle, p), hapco.step(p)
        largest = max(largest, np.linalg.norm(s.force))
        np.testing.assert_allclose(force, s.force, atol=1e3 * tolerance * largest)
        assert state.port.info["residual"][0] <= tolerance and not state.port.status["flags"][0]
    assert largest > 0.1


def sweeps_of_first_touch(live, tolerance=1e-8):
    """Sweeps from no force to 1 mm of press, and the force."""
    state, handle = servo(tolerance=tolerance, live=live)
    force = lead(state, handle, start(state) - np.array([0.0, 1e-3, 0.0]))
    assert not state.port.status["flags"][0]
    return state.port.status["sweeps"][0], force, state


def test_an_imposed_rho_is_that_rho_and_the_computed_one_is_the_least_stiffness():
    sweeps, force, state = sweeps_of_first_touch({"solver": UZAWA_GLOBAL})
    n = int(state.engine.contacts.count[0]["found"])
    rho_min = 1.0 / state.engine.problem.w[: 9 * n * n].reshape(3 * n, 3 * n).diagonal().max()
    imposed = {"solver": UZAWA_GLOBAL, "rho": rho_min}
    assert np.array_equal(sweeps_of_first_touch(imposed)[1], force)
    for share in (0.5, 0.25, 0.125):
        # far below rho_min the error falls by about 1 - rho lmin(W) a sweep
        more, same, _ = sweeps_of_first_touch({"solver": UZAWA_GLOBAL, "rho": share * rho_min})
        assert 1.4 * sweeps < more < 2.8 * sweeps
        np.testing.assert_allclose(same, force, atol=1e-5 * force[1])
        factor = {"solver": UZAWA_GLOBAL, "rho_factor": share}
        assert np.array_equal(sweeps_of_first_touch(factor)[1], same)
        sweeps = more


def test_one_frictionless_contact_loses_1_minus_rho_w_nn_of_its_error_a_sweep():
    """Held far above by soft springs it yields most along its tangents, whose W gives rho_min: rho_min W_nn
    is small, and twice the rho takes about half the sweeps."""
    tolerance, counts = 1e-8, []
    for times in (1.0, 2.0):
        state, handle = servo(
            bottom()[4:5], Hold(direct=False, gains=Gains(4000.0, 0.0, 0.01, 0.0)), tolerance, mu=0.0,
            live={"solver": UZAWA_GLOBAL, "rho_factor": times},
        )  # fmt: skip
        lead(state, handle, start(state) - np.array([0.0, 1e-5, 0.0]))
        diagonal = state.engine.problem.w[:9].reshape(3, 3).diagonal()
        left = 1.0 - times * diagonal[0] / diagonal.max()
        # from r = 0: r = (1 - left^k) r*, so that W_nn / mean(W_ii) left^k r* is left of the map, and the
        # free offset asks for W_nn / mean(W_ii) r*, which is less than r
        assert diagonal[0] < diagonal.mean()
        counts.append(int(state.port.status["sweeps"][0]))
        assert counts[-1] == math.ceil(math.log(tolerance) / math.log(left))
    assert counts[1] < 0.6 * counts[0]


def test_the_local_method_takes_fewer_sweeps_the_smaller_its_own_error():
    counts = [
        sweeps_of_first_touch({"solver": UZAWA_LOCAL, "uzawa_error": e, "rho_factor": 0.5})[0]
        for e in (0.3, 1e-3, 1e-9)
    ]
    assert counts[0] > counts[1] > counts[2]


@pytest.mark.parametrize("kind", [RELATIVE, PHYSICAL])
def test_the_gauss_seidel_error_ends_the_sweeps(kind):
    """The residual that it leaves goes with it, and the tolerance has no part in it."""
    live = {"solver": UZAWA_GLOBAL, "error_kind": kind}
    residuals = []
    for error in (1e-2, 1e-4, 1e-6):
        _, _, state = sweeps_of_first_touch(live | {"gauss_seidel_error": error}, tolerance=1e-14)
        residuals.append(state.port.info["residual"][0] / error)
    assert min(residuals) > 0.02 and max(residuals) < 50.0


@pytest.mark.parametrize("times", [1e3, 1e6, 1e30, 1e300])
def test_a_rho_past_all_stability_is_reported_and_the_hand_keeps_the_last_equilibriums_force(times):
    state, handle = servo(tolerance=1e-8, sweeps=500, live={"solver": UZAWA_GLOBAL})
    press, side = np.array([0.0, 1e-3, 0.0]), np.array([1e-4, 0.0, 0.0])
    before = lead(state, handle, start(state) - press)
    state.live["rho_factor"] = times
    after = lead(state, handle, state.port.position - press * 0.1 + side)
    assert state.port.status["flags"][0] & SOLVE_DIVERGED and state.engine.solver.told["divergences"] == 1
    # the contacts' axes may have turned between the two
    np.testing.assert_allclose(after, before, atol=0.02 * before[1])
    for k in range(state.engine.contacts.count[0]["found"]):
        own, image = state.engine.r[3 * k : 3 * k + 3], np.empty(3)
        project_cone(own, 0.3, image)
        np.testing.assert_allclose(image, own, atol=1e-12)
    state.live["rho_factor"] = 1.0
    assert lead(state, handle, state.port.position)[1] > 1.02 * before[1]
    assert not state.port.status["flags"][0]


@pytest.mark.parametrize("times", [10.0, 100.0])
def test_sweeps_that_only_swing_or_grow_never_reach_the_hand(times):
    """The right force along this path is at most 0.46 N; a swinging one has a residual as good as any."""
    live = {"solver": UZAWA_GLOBAL, "rho_factor": times}
    state, handle = servo(tolerance=1e-6, sweeps=2000, live=live)
    for p in press_and_slide(start(state))[::4]:
        assert np.linalg.norm(lead(state, handle, p)) < 1.0
    assert state.engine.solver.told["divergences"] > 0


def send(state, values, identity, live=UNSET):
    state.settings[int(writer_slot(state.frames.control[0]))] = values[0]
    hand_over(state.frames, 0, identity, live=live)


def test_a_change_of_solver_or_rho_is_repeated_bit_for_bit():
    def run():
        state, handle = servo(tolerance=1e-6, sweeps=2000)
        rows, changes = [], {20: ("solver", UZAWA_GLOBAL), 40: ("rho_factor", 1.5), 60: ("rho", 300.0),
                             80: ("solver", UZAWA_LOCAL), 100: ("solver", ANDERSON)}  # fmt: skip
        for k, p in enumerate(press_and_slide(start(state))):
            if k in changes:
                values = state.live.copy()
                values[changes[k][0]] = changes[k][1]
                send(state, values, k)
            rows.append(record(state, handle, [p])[0])
        return np.array(rows)

    first = run()
    assert np.array_equal(first, run())
    assert list(np.unique(column(first, "frame"))) == [0, 20, 40, 60, 80, 100]


def test_the_parameters_of_uzawas_method_are_nothing_to_andersons():
    others = {"rho": 3.0, "rho_factor": 0.1, "error_kind": PHYSICAL, "gauss_seidel_error": 0.5}
    runs = [servo(tolerance=1e-6, sweeps=200, live=live) for live in ({}, others)]
    first, second = (record(*run, press_and_slide(start(run[0]))) for run in runs)
    assert np.array_equal(first, second)


def test_settings_act_at_the_next_tick_and_are_named_by_the_status():
    state, handle = servo(mu=0.0)
    path = start(state) + np.array([[0.0, -1e-3, 0.0], [1e-3, -1e-3, 0.0], [2e-3, -1e-3, 0.0]])
    lead(state, handle, path[0])
    smooth = lead(state, handle, path[1])
    assert abs(smooth[0]) < 0.05 * smooth[1] and state.port.status["frame"][0] == 0
    values = state.live.copy()
    values["friction"] = 0.6
    send(state, values, 7, (0.5, 2.0, 0.0))
    rough = lead(state, handle, path[2])
    assert -rough[0] > 0.2 * rough[1] and state.port.status["frame"][0] == 7
    assert state.port.live[0].item() == (0.5, 2.0, 0.0)


def test_a_modulus_in_the_settings_is_that_modulus_in_the_body():
    """W and the sag scale as 1 / E, exactly: half the fixed body's modulus, three times the mobile one's."""
    gravity = (0.0, -9.81, 0.0)
    materials = Material(3.0 * STIFF.youngs_modulus, 0.3, 1000.0), Material(1e4, 0.4, 1000.0)
    built, built_handle = servo(two=bodies(materials=materials, gravity=gravity))
    scaled, scaled_handle = servo(two=bodies(gravity=gravity))
    scaled.live["modulus"] = 3.0, 0.5
    assert TISSUE.youngs_modulus == 2e4
    for p in press_and_slide(start(built))[:60]:
        one, two = lead(built, built_handle, p), lead(scaled, scaled_handle, p)
        np.testing.assert_allclose(two, one, atol=1e-8)
    assert np.linalg.norm(one) > 0.02


def renewed(share, ratio=0.45, gravity=(0.0, 0.0, 0.0)):
    """(state, its handle) whose fixed body has so much of the boundary of that Poisson's ratio."""
    two = bodies(gravity=gravity)
    made = two[1].with_poisson_ratio(ratio).boundary
    two[1].second.compliance[:], two[1].second.sag[:] = made.compliance, made.sag
    return servo(two=two, live={"renewed": (0.0, share)})


def test_a_body_with_all_of_another_poissons_ratio_is_the_one_made_with_it_bit_for_bit():
    gravity = (0.0, -9.81, 0.0)
    materials = STIFF, Material(TISSUE.youngs_modulus, 0.45, 1000.0)
    made, made_handle = servo(two=bodies(materials=materials, gravity=gravity))
    state, handle = renewed(1.0, 0.45, gravity)
    for p in press_and_slide(start(made)):
        one, two = lead(made, made_handle, p), lead(state, handle, p)
        assert np.array_equal(one, two)
        assert np.array_equal(made.fixed_x, state.fixed_x)
    assert np.abs(made.fixed.u).max() > 0.0


def test_part_of_the_way_to_another_poissons_ratio_compliance_and_sag_are_that_part_of_both():
    """W of contacts that are found on the undeformed shape, and the shape under the weight alone."""
    w, sag = {}, {}
    for share in (0.0, 0.3, 1.0):
        state, handle = renewed(share)
        lead(state, handle, start(state) - np.array([0.0, 1e-3, 0.0]))
        n = 3 * int(state.engine.contacts.count[0]["found"])
        w[share] = np.empty((n, n))
        whole_matrix(Handle(state), w[share])
        state, handle = renewed(share, gravity=(0.0, -9.81, 0.0))
        lead(state, handle, start(state) + np.array([0.0, 1e-2, 0.0]))
        sag[share] = state.fixed.u.copy()
    for of in w, sag:
        np.testing.assert_allclose(of[0.3], 0.7 * of[0.0] + 0.3 * of[1.0], atol=1e-13 * np.abs(of[1.0]).max())
        assert np.abs(of[1.0] - of[0.0]).max() > 1e-2 * np.abs(of[0.0]).max()


def test_another_poissons_ratio_of_a_stiffness_that_was_given_is_refused_in_words():
    above, _ = bodies()
    given = QuasistaticBody("given", above.mesh, STIFF, above.clamped, stiffness=above.K)
    with pytest.raises(InputError, match="its K was given, and tells nothing of another Poisson's ratio"):
        given.with_poisson_ratio(0.2)


def test_the_stylus_is_made_up_for_beside_the_contacts():
    state, handle = servo(live={"stylus_weight": 0.45, "stylus_friction": 0.1})
    state.port.velocity[:] = 0.3, 0.0, -0.4
    force = lead(state, handle, start(state) + np.array([0.0, 5e-3, 0.0]))
    np.testing.assert_allclose(force, [0.06, 0.45, -0.08], atol=1e-15)
    assert not state.port.info["total"][0].any()
    state.port.velocity[:] = 0.0
    assert lead(state, handle, start(state) + np.array([0.0, 5e-3, 0.0]))[0] == 0.0


def test_the_zoom_shrinks_the_hands_way_near_contact_continuously_and_gives_it_back():
    state, handle = servo(live={"zoom_scale": 0.25, "zoom_range": 2e-3})
    top, step = start(state) + np.array([0.0, 4e-3, 0.0]), 1e-4
    shares, before = [], None
    for k in range(60):
        lead(state, handle, top - np.array([0.0, step * k, 0.0]))
        if before is not None:
            shares.append((before - state.hand.position[1]) / step)
        before = state.hand.position[1]
    shares = np.array(shares)
    assert shares[0] == pytest.approx(1.0) and shares[-1] == pytest.approx(0.25, abs=0.02)
    # the share follows the gap: no step of the hand changes it by more than 0.75 step / range
    assert np.abs(np.diff(shares)).max() < 1.1 * 0.75 * step / 2e-3
    ahead = top[1] - 59 * step - state.hand.position[1]
    assert ahead < -5e-4
    for k in range(200):
        lead(state, handle, top - np.array([0.0, step * (59 - k), 0.0]))
    assert abs(state.port.position[1] - state.hand.position[1]) < 1e-3 * abs(ahead)


def test_without_zoom_the_frame_is_exactly_where_the_hand_is():
    state, handle = servo()
    for p in press_and_slide(start(state)):
        lead(state, handle, p)
        np.testing.assert_allclose(state.mobile.frame.now.position, p, atol=1e-17, rtol=0)


@pytest.mark.parametrize("solver", [ANDERSON, UZAWA_LOCAL])
def test_a_tick_allocates_nothing(solver):
    """Two arrays are passed to the compiled loop, whether it makes one tick or all."""
    hold = Hold(direct=False, gains=GAINS)
    state, handle = servo(tolerance=1e-4, sweeps=200, hold=hold, live={"solver": solver})
    path = press_and_slide(start(state))
    forces = np.zeros_like(path)
    run_along(handle, path[:1], forces)
    counts = []
    _nrt_python.memsys_enable_stats()
    try:
        for part in (path[:1], path):
            before = rtsys.get_allocation_stats().alloc
            assert run_along(handle, part, forces) == len(part)
            counts.append(rtsys.get_allocation_stats().alloc - before)
    finally:
        _nrt_python.memsys_disable_stats()
    assert counts == [2, 2] and np.abs(forces).max() > 0.05


def test_the_c_callback_is_the_tick():
    function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(servo_tick.address)
    (one, handle), (two, other) = servo(tolerance=1e-6), servo(tolerance=1e-6)
    for p in press_and_slide(start(one))[::4]:
        lead(one, handle, p)
        two.port.position[:] = p
        assert function(other.address) == OK
        assert np.array_equal(one.port.force, two.port.force)
    with pytest.raises(TypeError, match="not laid out as its unit expects"):
        Bound.bind(hapco_link, one._replace(mobile_x=one.mobile_x.astype(np.float32)))
    assert isinstance(handle, Handle)


def test_a_pose_that_is_no_number_is_reported():
    state, handle = servo()
    lead(state, handle, start(state))
    state.port.position[0] = math.nan
    assert tick(handle) != OK


def test_what_the_servo_cannot_do_is_refused_in_words():
    above, _ = bodies()
    _, below = bodies(body=ConjugateGradientBody)
    with pytest.raises(InputError, match=r"needs K\^-1 on the boundary"):
        make_servo(BodyPair(above, below))
    with pytest.raises(InputError, match=r"stiffness is 0\.0; stiffnesses must be positive"):
        Hold(gains=Gains(0.0, 1.0, 1.0, 1.0))
