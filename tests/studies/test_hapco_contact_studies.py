"""HapCo's studies of contacts, of the Delassus operator and of the haptic trials, and its benchmark."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from palpo.benchmarks.hapco import SCENES, STAGES, time_stages, time_ticks, timed_path
from palpo.benchmarks.hapco_bearing import TOUCH, bearing, rig_of, solved, timed
from palpo.config.load import load_scene
from palpo.haptics.clock import make_scratch
from palpo.physics.contact.problem import ContactProblem
from palpo.physics.exchange.handle import Handle
from palpo.studies.hapco_benches import BENCHES, lead, make_interaction
from palpo.studies.hapco_contacts import AT_ONE_RESIDUAL, TOLERANCE, build, fit_order, problems_along, refined
from palpo.studies.hapco_delassus import _with_w, _without_w, assembled, unassembled
from palpo.studies.hapco_haptic_trials import (
    DEVICE,
    MODULI,
    STEPS,
    TREMBLE,
    HapticStep,
    HapticTrial,
    hand_path,
    hand_positions,
    largest_jump,
    peak,
    trembling,
)
from palpo.studies.registry import run_study
from palpo.studies.runs import scene_path

QUIET = Console(quiet=True)
COARSE = replace(BENCHES["delassus-16"].mobile, cells=(2, 3, 2))
BENCH = replace(BENCHES["delassus-16"], mobile=COARSE)
"""Nine contacts of the Delassus bench."""
PRESSED = np.array([0.0005, -0.002, 0.0])


# ---- contacts


def test_the_order_of_a_power_law_is_its_exponent():
    n = np.array([16.0, 36.0, 66.0])
    assert fit_order(n, 3e-4 * n**2.07) == pytest.approx(2.07, abs=1e-12)


@pytest.mark.parametrize("side", [4, 6, 10, 20])
def test_the_refined_blocks_keep_their_sizes_and_the_ratio_of_their_meshes(side):
    bench = refined(side)
    assert bench.n_contacts == side * side
    assert bench.mobile.size == refined(4).mobile.size and bench.fixed.size == refined(4).fixed.size
    # to the nearest whole number of cells
    assert abs(bench.fixed.cells[0] - 1.5 * bench.mobile.cells[0]) <= 0.5


def test_a_bench_without_a_name_is_laid_as_one_with_a_name():
    one = lead(make_interaction("delassus-16", "aluminium", "tissue"), PRESSED)
    other = lead(build(BENCHES["delassus-16"], "aluminium", "tissue"), PRESSED)
    np.testing.assert_array_equal(one.problem.w, other.problem.w)
    np.testing.assert_array_equal(one.result.r, other.result.r)


def test_solvers_timed_at_one_residual_have_it():
    interaction = build(BENCH, "aluminium", "tissue")
    problems, _ = problems_along(interaction, np.outer([1.0, 2.0], PRESSED), 2)
    for problem in problems:
        assert problem.warm is None and problem.n_contacts == 9
        for contender in AT_ONE_RESIDUAL:
            result = contender.solve(problem)
            assert result.residual <= TOLERANCE and result.iterations > 0


# ---- with and without W


@pytest.fixture(scope="module")
def pressed():
    """The bodies, turned so that no axis of theirs is one of the world's, with their weight."""
    interaction = build(BENCH, "tissue", "tissue")
    for body in (interaction.mobile, interaction.fixed):
        body.gravity[:] = (1.0, -9.81, 2.0)
    return interaction, lead(interaction, PRESSED)


def test_the_problem_without_w_has_the_w_and_offsets_of_the_step(pressed):
    interaction, step = pressed
    assert isinstance(step.problem, ContactProblem)
    problem = unassembled(interaction, step)
    gathered = assembled(problem)
    scale = np.abs(step.problem.w).max()
    np.testing.assert_allclose(gathered.w, step.problem.w, rtol=0.0, atol=1e-14 * scale)
    # the gap is b less the sag, to which the sag is added again: roundings of 1e-16 of some mm
    np.testing.assert_allclose(gathered.b, step.problem.b, rtol=0.0, atol=1e-17)
    np.testing.assert_allclose(problem.offsets(np.zeros(27)), step.problem.b, rtol=0.0, atol=1e-17)


def test_forces_with_and_without_w_are_the_same_sweep_by_sweep(pressed):
    problem = unassembled(*pressed)
    one, other = _with_w(problem), _without_w(problem)
    assert one.iterations == other.iterations > 1
    # the same operations but for the order of sums, over a few hundred sweeps
    np.testing.assert_allclose(other.r, one.r, rtol=0.0, atol=1e-12 * np.linalg.norm(one.r))
    np.testing.assert_array_equal(other.status, one.status)


# ---- the haptic trials


def test_trembling_is_what_lies_above_its_frequency():
    t = 1e-3 * np.arange(4000)
    slow, fast = (np.outer(np.sin(2 * np.pi * f * t), [0.0, 3.0, 4.0]) for f in (3.0, 200.0))
    # fourth order, both ways: (3 / 30)^8 of the slow wave is left, and what the ends of 4 s ring
    assert trembling(slow) < 1e-3 * 5.0
    # the RMS of a wave of amplitude 5; it misses the ends, some 1 / TREMBLE of 4 s
    assert trembling(slow + fast) == pytest.approx(5.0 / np.sqrt(2.0), rel=0.25 / TREMBLE)


def test_jump_and_peak_are_norms():
    forces = np.array([[0.0, 0.0, 0.0], [3.0, 4.0, 0.0], [3.0, 4.0, 1.0]])
    assert largest_jump(forces) == 5.0
    assert peak(forces) == pytest.approx(np.sqrt(26.0))


def test_the_hand_goes_as_deep_as_it_is_told():
    path = hand_path(0.01)
    assert path[:, 1].min() == pytest.approx(0.0525 - 0.01)
    np.testing.assert_allclose(np.ptp(path[:, 0]), 0.04)
    assert largest_jump(path) < 1e-4  # 0.1 m/s at 1 kHz: no hand tears the stylus away


@pytest.fixture(scope="module")
def trial():
    """Step 5 at 16 contacts on a path cut short after it has pressed, and both of its forces."""
    found, path = HapticTrial(STEPS[4], 16, MODULI[0]), hand_path(0.006)[:2000]
    return found, path, found.ours(path), found.thesis(path)


def test_the_thesis_s_force_is_held_for_its_period(trial):
    found, _, _, theirs = trial
    hold = round(1e3 / found.step.printed_hz)
    changes = np.flatnonzero(np.diff(theirs, axis=0).any(axis=1)) + 1
    assert changes.size > 20 and (changes % hold == 0).all()


def test_both_loops_come_to_the_same_force_at_rest(trial):
    _, _, ours, theirs = trial
    # both within eps_GS = 1e-2, and the hand still on its way by its last counts
    np.testing.assert_allclose(ours[-1], theirs[-1], atol=0.03 * np.linalg.norm(theirs[-1]))
    assert ours[-1][1] > 0.3


def test_the_hand_s_way_is_found_again_from_the_forces(trial):
    _, path, ours, _ = trial
    reached = hand_positions(ours, path)
    # at rest the hand's spring carries the force, but for dry friction and a count
    hand = 400.0 * (path[-1] - reached[-1])
    np.testing.assert_allclose(-hand, ours[-1], atol=DEVICE.friction + 400.0 * DEVICE.resolution)


def test_no_force_is_more_than_the_device_has():
    violent = HapticStep("x", 1e-2, 1.0, 0.3, 100.0)
    path = hand_path(0.06)[:1900]
    trial = HapticTrial(violent, 16, 900.0)
    for forces in (trial.ours(path), trial.thesis(path)):
        assert 0.99 * DEVICE.max_force < peak(forces) <= DEVICE.max_force * (1.0 + 1e-12)


# ---- the benchmark


@pytest.mark.parametrize("contacts", SCENES)
def test_the_benchmark_meets_as_many_contacts_as_it_says(contacts):
    spec = load_scene(SCENES[contacts])
    path = scene_path(spec)[::50]
    ns, met, residuals = timed_path(spec, path, rounds=1)
    assert met[:, 1].max() == 3 * contacts and met[:, 1].min() == 0
    assert (ns > 0).all() and (met[:, 0] > 0).any() and (residuals[met[:, 0] == 0] == 0.0).all()


def test_ticks_of_each_kind_of_loops_are_timed_where_most_contacts_bear():
    coarse = "bodies.plate.geometry.divisions=[5,2,5]", "bodies.tissue.geometry.divisions=[8,3,8]"
    spec = load_scene("hapco-thousand", [*coarse, "rates.low_hz=50"])
    path = np.tile([0.0, TOUCH - 1e-3, 0.0], (60, 1))
    forces = []
    for loops in ("servo", "multirate", "tangent"):
        ns, force, bear = timed(rig_of(spec, path, loops), path)
        assert (ns > 0).all() and bear[-1] > 0.8 * 36
        forces.append(force[-1])
    # at rest all are the solution's, but for friction's way there
    np.testing.assert_allclose(forces[1:], [forces[0]] * 2, rtol=0.0, atol=0.02 * forces[0][1])
    assert set(bearing({"p50": 1.0}, cases=())) == set()


def test_what_ticks_are_judged_by_is_a_solution_however_many_contacts_come_to_bear_at_once():
    """Without friction an equilibrium has no history but the shapes that normals are taken from: one jump, by
    which more contacts sink in than a tick's working set takes in, ends where small steps do. What is not
    solved is refused."""
    smaller = ["bodies.plate.geometry.divisions=[20,1,20]", "bodies.tissue.geometry.divisions=[8,3,8]"]
    spec = load_scene("hapco-thousand", [*smaller, "friction.default=0"])
    path = np.zeros((5, 3))
    path[:, 1] = TOUCH + np.linspace(1e-3, -1e-3, 5)
    jump, steps = solved(spec, path[[0, -1]])[-1], solved(spec, path)[-1]
    np.testing.assert_allclose(jump, steps, rtol=0.0, atol=0.02 * steps[1])
    with pytest.raises(RuntimeError, match="has a residual of"):
        solved(load_scene("hapco-thousand", [*smaller, "solver.sweeps=1"]), path[[0, -1]])


def test_a_tick_in_timed_stages_is_the_tick():
    spec = load_scene("hapco-16")
    path = scene_path(spec)[900:1500:10]
    rigs = [rig_of(spec, path) for _ in range(2)]
    states = [rig.state for rig in rigs]
    one, other = (Handle(rig.ticks) for rig in rigs)
    n = len(path)
    whole = time_ticks(
        one, path, np.zeros(n, np.int64), np.zeros((n, 4), np.int64), np.zeros(n), make_scratch()
    )
    parts = time_stages(other, path, np.zeros((n, len(STAGES)), np.int64), make_scratch())
    assert whole == parts == n
    # the same operations in the same order
    for one, other in zip(states[0].fixed, states[1].fixed, strict=True):
        if isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(states[0].port.force, states[1].port.force)
    assert states[0].port.force[1] > 0.0


# ---- whole studies, in short


@pytest.mark.slow
def test_the_study_of_contacts_writes_its_times_and_orders(tmp_path: Path):
    claims = run_study("hapco-contacts", tmp_path, quick=True, console=QUIET)
    with (tmp_path / "contacts.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {int(row["contacts"]) for row in rows} == {16, 36, 64, 66, 100}
    assert (tmp_path / "contacts.png").stat().st_size > 20_000
    assert all(np.isfinite(claim.value) for claim in claims if "order" in claim.name)


@pytest.mark.slow
def test_the_study_without_w_holds(tmp_path: Path):
    claims = run_study("hapco-delassus", tmp_path, quick=True, console=QUIET)
    timed = [claim for claim in claims if "time" in claim.name]
    assert timed and all(claim.holds for claim in claims if claim not in timed), claims
    assert (tmp_path / "delassus.png").stat().st_size > 20_000


def test_the_laws_of_small_and_of_large_strain_agree_where_little_is_pressed(tmp_path: Path):
    claims = run_study("hapco-strain", tmp_path, quick=True, console=QUIET)
    assert len(claims) == 2 and all(claim.holds for claim in claims), claims
    assert (tmp_path / "strain.png").stat().st_size > 20_000


@pytest.mark.slow
def test_the_haptic_trials_are_smooth(tmp_path: Path):
    claims = run_study("hapco-haptic", tmp_path, quick=True, console=QUIET)
    timed = [claim for claim in claims if "rate" in claim.name]
    assert len(timed) >= 2 and all(claim.holds for claim in claims if claim not in timed), claims
    for name in ("penetration.png", "trials.png"):
        assert (tmp_path / name).stat().st_size > 20_000
