"""Runs of HapCo's scenes: their contacts and forces, what an operator changes, and that all of it repeats."""

import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from numpy.lib.recfunctions import structured_to_unstructured as numbers

from palpo.app.report.outcome import FAILED, FINISHED
from palpo.app.report.publish import take_pictures
from palpo.app.runtime.live import change_text, changed, device_values, live_keys
from palpo.app.runtime.options import Options
from palpo.app.runtime.replay import replay
from palpo.app.runtime.session import Session, run
from palpo.app.systems.hapco.build import settings_of
from palpo.config.load import load_scene
from palpo.config.words import ConfigError
from palpo.haptics.control import is_frozen, tick_count
from palpo.haptics.device_spec import DEVICES
from palpo.haptics.errors import HapticsError
from palpo.haptics.flags import PAUSING, STOPPING
from palpo.haptics.recording import read_recording
from palpo.physics.bodies.io import StoredBody, write_body
from palpo.physics.bodies.quasistatic import QuasistaticBody
from palpo.physics.contact.io import read_problem
from palpo.physics.contact.laws import natural_map_residual
from palpo.physics.contact.solvers.registry import find_solver
from palpo.physics.exchange.port import CONTACTS_LOST, SWEEPS_SPENT, TIME_SPENT
from palpo.physics.exchange.snapshot import OPEN, SLIP, STICK
from palpo.physics.numerics import cache
from palpo.physics.numerics.cache import cache_folder
from palpo.render.gl import RenderUnavailable
from palpo.studies.hapco_solvers import REFERENCE, reference
from tests.scenes.runs import columns_of, force

CONTACTS = {
    "hapco-16": 16,
    "hapco-2008-both": 36,
    "hapco-2008-left": 36,
    "hapco-66": 66,
    "hapco-block": 36,
    "hapco-delassus": 36,
    "hapco-liver": None,  # whatever of the bar comes near the organ
    "hapco-rubber": 36,
    "hapco-soft": 36,
}
# Pressed, dragged and lifted within half a second, on the coarser mesh.
QUICK = (
    "safety.fade_in=0.05",
    "device.path=[[0, 0, 0.0555, 0], [0.15, 0, 0.045, 0], [0.35, 0.006, 0.045, 0], [0.5, 0.006, 0.056, 0]]",
    "bodies.punch.placement.position=[0, 0.0355, 0]",
    "bodies.punch.clamped=[{box=[[-1, 0.0554, -1], [1, 1, 1]]}]",
    "bodies.punch.contact=[{box=[[-1, -1, -1], [1, 0.0156, 1]]}]",
    "workspace.offset=[0, 0.0555, 0]",
)
BLOCK = Options("hapco-16", QUICK, device="mock", lock_step=True, baseline=False)
THREADS = replace(BLOCK, lock_step=False, duration=0.6)
pytestmark = pytest.mark.usefixtures("own_cache")


def act(session, *steps):
    """Run a session while somebody acts after ticks: (tick, what)."""
    waiting = list(steps)

    def watch(_state, _fresh):
        if waiting and tick_count(session.rig.servo) >= waiting[0][0]:
            waiting.pop(0)[1]()
        time.sleep(1e-3)

    session.prepare()
    done = session.run(watch)
    assert not waiting
    return done


def watched(session, look):
    """Run a session in lock-step, `look` called after each slow step."""
    session.prepare()
    latest = session.visual.latest

    def looked():
        look()
        return latest()

    session.visual.latest = looked
    return session.run()


RARE = 0.01
"""Share of a scene's ticks that may spend their sweeps, some times what was seen on any processor."""


@pytest.mark.parametrize("scene", CONTACTS)
def test_a_scene_is_felt_along_its_path_and_its_solver_keeps_its_tolerance_or_is_as_good_to_the_hand(
    scene, tmp_path
):
    """Which ticks spend their sweeps, and how many, hangs on last bits: the way of a solve through changes of
    status is chaotic. What its best force is off by must lie below what the device's own friction hides.
    """
    path = tmp_path / "run.h5"
    # a slow step in each tick, to look at its problem
    session = Session(Options(scene, ("rates.low_hz=1000",), device="mock", lock_step=True, record=path))
    left = []

    def look():
        state, n = session.rig.state, int(session.rig.state.engine.contacts.count[0]["found"])
        if int(state.port.status["flags"][0]) & SWEEPS_SPENT:
            r, frames = state.engine.r[: 3 * n].copy(), state.engine.contacts.frame[:n].copy()
            left.append((session.rig.problem(), r, frames))

    done = watched(session, look)
    assert done.status == FINISHED
    c, spec = columns_of(path), load_scene(scene)
    assert all(np.isfinite(values).all() for values in c.values())
    if CONTACTS[scene] is not None:
        assert c["rows"].max() == 3 * CONTACTS[scene]
    flags = c["tick_flags"].astype(int)
    assert not (flags & (CONTACTS_LOST | TIME_SPENT)).any()
    spent = (flags & SWEEPS_SPENT) != 0
    assert c["residual"][~spent].max() <= spec.solver.tolerance
    assert len(left) == spent.sum() <= RARE * len(spent)
    for problem, r, frames in left:
        exact = reference(problem, find_solver("best").solve(problem, REFERENCE))
        assert exact.converged
        off = np.einsum("ci,cij->j", (r - exact.r).reshape(-1, 3), frames)
        assert np.linalg.norm(off) < DEVICES[spec.device.model].friction
    # free at both ends, and between them a force that a hand can feel and the device can give
    running = (c["flags"].astype(int) & STOPPING) == 0
    hand = np.linalg.norm(force(c, "sent"), axis=1)
    assert not force(c)[:300].any() and not force(c)[running][-1].any()
    assert 0.5 < hand.max() < 7.9
    assert hand.max() == pytest.approx(
        (spec.workspace.force_scale or 1.0) * np.linalg.norm(force(c), axis=1).max(), rel=1e-9
    )


def test_friction_pulls_against_the_hand_and_at_zero_there_is_none(tmp_path):
    session = Session(replace(BLOCK, record=tmp_path / "run.h5", overrides=(*QUICK, "friction.default=0")))
    session.prepare()
    session.run()
    pictures = [state for _, state in session.album.states()]
    touching = [state for state in pictures if (state.contact_state != OPEN).any()]
    assert touching and all((state.contact_state != STICK).all() for state in touching)
    # without friction a contact pushes along its normal, so that none of them can stick
    assert any((state.contact_state == SLIP).any() for state in touching)


def test_twice_the_moduli_are_twice_the_force(tmp_path):
    """Displacements that are imposed do not know the moduli; without gravity forces are proportional."""
    forces = []
    for k, factor in enumerate((1.0, 2.0)):
        moduli = (
            f"bodies.punch.material.youngs_modulus={69e9 * factor}",
            f"bodies.tissue.material.youngs_modulus={45e3 * factor}",
        )
        # the hand is led past its spring: a table that no force moves
        path = tmp_path / f"{k}.h5"
        table = tmp_path / "hand.csv"
        t = np.linspace(0.0, 0.4, 41)
        y = np.interp(t, [0.0, 0.2, 0.4], [0.0555, 0.045, 0.045])
        np.savetxt(table, np.c_[t, 0.02 * t, y, 0 * t], delimiter=",", header="t,x,y,z", comments="")
        run(replace(BLOCK, record=path, device=f"replay:{table}", overrides=(*QUICK, *moduli)))
        forces.append(force(columns_of(path)))
    size = np.abs(forces[0]).max()
    assert size > 0.1
    # both solves end at the same sweep of the same problem in other units
    np.testing.assert_allclose(forces[1], 2.0 * forces[0], atol=1e-9 * size)


@pytest.fixture(scope="module")
def changed_run(tmp_path_factory, own_cache):
    """A run in lock-step whose operator changes things from slow steps 11 and 17 on."""
    path = tmp_path_factory.mktemp("run") / "run.h5"
    session = Session(replace(BLOCK, record=path))
    session.prepare()
    steps = iter(range(10**6))
    latest = session.visual.latest

    def look():
        step = next(steps)
        if step == 10:
            session.change("friction.default", 0.0)
        if step == 16:
            session.change("bodies.tissue.material.youngs_modulus", 90e3)
        return latest()

    session.visual.latest = look
    return path, session.run(), session


def test_a_change_takes_effect_at_the_next_low_step_and_not_before(changed_run):
    path, done, session = changed_run
    assert done.status == FINISHED
    recording = read_recording(path)
    # each goes over in five even steps of 20 ms
    made = recording.changes
    softer, stiffer = made[0][0], made[5][0]
    assert [step for step, _ in made] == [*range(softer, softer + 5), *range(stiffer, stiffer + 5)]
    assert all(text.startswith("friction.default=") for _, text in made[:5])
    assert all(text.startswith("bodies.tissue.material.youngs_modulus=") for _, text in made[5:])
    c, ratio = recording.columns, session.rig.ratio
    assert np.array_equal(c["frame"], 1 + np.arange(len(c["frame"])) // ratio)
    plain = run(replace(BLOCK, record=path.with_name("plain.h5")))
    assert plain.status == FINISHED
    before = columns_of(path.with_name("plain.h5"))
    same = (force(before) == force(c)).all(axis=1)
    # what sticks feels less friction only once it slips
    assert same[: softer * ratio].all() and not same[softer * ratio : (softer + 5) * ratio].all()
    # a fifth more modulus at one pose is a fifth more normal force of a tick, but for the coupling in series
    before, after = np.linalg.norm(force(c)[[stiffer * ratio - 1, stiffer * ratio]], axis=1)
    assert after / before == pytest.approx(1.2, abs=0.02)


def test_a_run_with_changes_is_repeated_bit_for_bit(changed_run):
    again = replay(changed_run[0])
    assert again.status == FINISHED
    assert again.result["replay"]["equal"] and again.result["replay"]["ticks"] > 500


def test_a_run_in_threads_with_a_time_cap_changes_and_a_pause_is_repeated_bit_for_bit(tmp_path):
    """A microsecond ends every solve that needs more than its first sweeps."""
    path = tmp_path / "run.h5"
    session = Session(
        replace(THREADS, record=path, overrides=(*QUICK, "solver.time_cap=1e-6", "solver.tolerance=1e-12"))
    )
    servo = lambda: session.rig.servo  # noqa: E731
    done = act(
        session,
        (150, lambda: session.change("friction.default", 0.8)),
        (200, lambda: session.pause(True)),
        (230, lambda: session.step_once() if is_frozen(servo()) else None),
        (240, lambda: session.pause(False)),
        (400, lambda: session.change("solver.time_cap", 0.0)),
    )
    assert done.status == FINISHED
    c = columns_of(path)
    cut = (c["tick_flags"].astype(int) & TIME_SPENT) != 0
    assert 10 < cut.sum() < len(cut) and (c["flags"] & PAUSING).any()
    told = f"In {cut.sum()} ticks the solver's"
    assert any(warning.startswith(told) for warning in done.result["warnings"])
    again = replay(path)
    assert again.result["replay"]["equal"], again.result["exit_reason"]
    assert again.result["replay"]["ticks"] == len(cut)


RATIO = "bodies.tissue.material.poisson_ratio"


def ratio_changed(path, overrides, at, *values):
    """Forces (n, 3) [N] of a run in lock-step whose ratio is changed at slow steps `at`."""
    session = Session(replace(BLOCK, record=path, overrides=(*QUICK, *overrides)))
    steps, due = iter(range(10**6)), dict(zip(at, values, strict=True))

    def look():
        step = next(steps)
        if step in due:
            session.change(RATIO, due[step])

    assert watched(session, look).status == FINISHED
    return force(columns_of(path))


def test_a_poissons_ratio_changed_before_the_touch_is_that_of_a_scene_begun_with_it_bit_for_bit(tmp_path):
    """Bodies without inertia that touch nothing remember nothing. There and back, and to a third one."""
    late = (
        "device.path=[[0, 0, 0.0555, 0], [0.65, 0, 0.0555, 0], [0.75, 0, 0.046, 0], [0.9, 0.004, 0.046, 0]]",
        "gravity=[0, -9.81, 0]",
    )
    wanted = force_of(tmp_path / "begun.h5", (*late, f"{RATIO}=0.2"))
    touch = np.flatnonzero(np.abs(wanted).max(axis=1) > 0.0)[0]
    assert touch > 33 * 20 and np.abs(wanted).max() > 0.05
    # the second of them is asked for while the first still goes over
    changed = ratio_changed(tmp_path / "changed.h5", late, (0, 3, 12, 24), 0.4, 0.3, 0.45, 0.2)
    assert np.array_equal(changed, wanted)
    assert not np.array_equal(force_of(tmp_path / "plain.h5", late), wanted)


def force_of(path, overrides):
    """Forces (n, 3) [N] of a run in lock-step."""
    assert run(replace(BLOCK, record=path, overrides=(*QUICK, *overrides))).status == FINISHED
    return force(columns_of(path))


def test_a_poissons_ratio_changed_under_pressure_goes_over_in_even_steps_to_the_force_of_the_new_one(
    tmp_path,
):
    """Without friction, which would remember: a fifth of the change a slow step, but for its curvature."""
    held = (
        "device.path=[[0, 0, 0.0555, 0], [0.15, 0, 0.048, 0], [0.6, 0, 0.048, 0]]",
        "friction.default=0",
        "solver.tolerance=1e-9",
        "tool.hold.mode=direct",
        "device.hand.stiffness=4000",
    )
    at = 14
    forces = ratio_changed(tmp_path / "run.h5", held, (at,), 0.2)[:, 1]
    before = force_of(tmp_path / "before.h5", held)[:, 1]
    after = force_of(tmp_path / "after.h5", (*held, f"{RATIO}=0.2"))[:, 1]
    recorded = read_recording(tmp_path / "run.h5")
    assert [text for _, text in recorded.changes] == [f"{RATIO}=0.2"]
    first = 20 * recorded.changes[0][0]
    assert np.array_equal(forces[:first], before[:first])
    # until the force fades and the hand moves
    still = slice(first + 150, 600)
    whole = after[still][0] - before[still][0]
    assert abs(whole) > 0.01 * abs(before[still][0])
    np.testing.assert_allclose(forces[still], after[still], rtol=1e-6)
    around = slice(first - 1, first + 151)
    steps = np.diff(forces[around] - before[around])
    # the hand gives way by a count of its encoders now and then
    stays = np.diff(recorded.columns["py"][around]) == 0.0
    made = np.flatnonzero(stays & (np.abs(steps) > 0.02 * abs(whole)))
    assert np.array_equal(made, [0, 20, 40, 60, 80])
    assert np.sign(steps[made[0]]) == np.sign(whole)
    np.testing.assert_allclose(steps[made], steps[made].mean(), rtol=0.15)


def test_a_poissons_ratio_is_made_in_the_background_and_taken_where_a_replay_takes_it(tmp_path, monkeypatch):
    """Other changes do not wait for it, and of several ratios only the last that was asked for is taken."""
    path, asked, hold = tmp_path / "run.h5", [], threading.Event()
    made = QuasistaticBody.with_poisson_ratio

    def slowly(body, ratio, cache=None, progress=None):
        asked.append(ratio)
        progress(0.25)
        if not hold.wait(20.0):
            raise RuntimeError("nobody let it go on")
        progress(0.5)
        return made(body, ratio, cache, progress)

    monkeypatch.setattr(QuasistaticBody, "with_poisson_ratio", slowly)
    session = Session(replace(THREADS, record=path, duration=2.0))
    told = []
    done = act(
        session,
        (100, lambda: session.change(RATIO, 0.35)),
        (200, lambda: session.change(RATIO, 0.2)),
        (300, lambda: session.change("friction.default", 0.8)),
        (500, lambda: (told.append(session.state), hold.set())),
    )
    assert done.status == FINISHED
    assert asked == [0.35, 0.2] and told == ["K^-1 of tissue for nu = 0.2: 25%"]
    changes = read_recording(path).changes
    keys = [text for _, text in changes]
    assert keys.count(f"{RATIO}=0.2") == 1 and keys[-1] == f"{RATIO}=0.2" and "friction.default=0.8" in keys
    again = replay(path)
    assert again.result["replay"]["equal"], again.result["exit_reason"]


def test_another_scene_is_felt_under_a_recorded_hand(changed_run):
    again = replay(changed_run[0], "hapco-soft")
    assert again.status == FINISHED and "replay" not in again.result
    assert 0.0 < again.result["force_N"]["max_norm"] < 5.0


@pytest.mark.parametrize("scene", CONTACTS)
def test_every_live_key_of_every_scene_reaches_the_servo(scene):
    spec = load_scene(scene)
    built = tuple(body.material.youngs_modulus for body in (spec.mobile, spec.fixed))

    def told(spec):
        return np.append(numbers(settings_of(spec, built)), device_values(spec))

    before = told(spec)
    for live in live_keys(spec):
        if live.key.endswith(".poisson_ratio"):
            continue  # it reaches the servo as K^-1
        value: float | str = 0.3 * live.lower + 0.7 * live.upper
        if live.choices:
            value = next(choice for choice in live.choices if choice != live.value)
        else:
            assert live.lower <= live.value <= live.upper, live.key
        after = changed(spec, change_text(spec, live.key, value))
        same = np.isclose(told(after), before, rtol=1e-12, atol=0.0, equal_nan=True)
        assert (~same).sum() == 1, live.key


def test_the_coupling_has_its_gains_among_the_live_keys_and_a_direct_hold_none():
    keys = {live.key for live in live_keys(load_scene("hapco-block", ["tool.hold={mode='coupling'}"]))}
    gains = {f"tool.hold.{a}{b}" for a in ("", "rotational_") for b in ("stiffness", "damping")}
    assert gains <= keys
    assert not gains & {live.key for live in live_keys(load_scene("hapco-block"))}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "bodies.tissue.material.poisson_ratio=0.5",
            "bodies.tissue.material.poisson_ratio = 0.5 is too large; it must be below 0.5",
        ),
        (
            "bodies.tissue.integration=full",
            "cannot be changed while the scene runs; choose one of friction.default",
        ),
        ("friction.default=-1", "friction.default = -1 is too small"),
    ],
)
def test_what_cannot_be_changed_while_it_runs_is_refused_in_words(text, said):
    with pytest.raises(ConfigError, match=said):
        changed(load_scene("hapco-block"), text)


def test_an_interface_is_refused_for_a_scene_of_hapco():
    with pytest.raises(HapticsError, match="--interface krylov: the kinds are those of the"):
        Session(replace(BLOCK, interface="krylov"))


def test_a_scene_whose_cache_cannot_be_written_runs_all_the_same(monkeypatch):
    monkeypatch.setattr(cache, "own_folder", lambda folder: None)
    assert cache_folder("compliance") is None
    assert run(replace(BLOCK, duration=0.01)).status == FINISHED


def test_a_body_from_a_file_is_felt_as_the_one_that_was_written(tmp_path):
    session = Session(replace(BLOCK, duration=0.3, record=tmp_path / "made.h5"))
    session.prepare()
    _, fixed = session.rig.bodies
    inverse = np.array(fixed.boundary.compliance)
    write_body(
        tmp_path / "body.h5", StoredBody(fixed.mesh, fixed.material, fixed.clamped, None, fixed.K, inverse)
    )
    session.run()
    own = (
        f"bodies.tissue={{kind='quasistatic',name='read',geometry={{kind='body',path='{tmp_path}/body.h5'}}}}"
    )
    run(replace(BLOCK, duration=0.3, record=tmp_path / "read.h5", overrides=(*QUICK, own)))
    made, read = (force(columns_of(tmp_path / f"{name}.h5")) for name in ("made", "read"))
    assert np.abs(made).max() > 0.1
    assert np.array_equal(made, read)


# ---- export


def test_an_exported_problem_is_the_servos_own_and_its_force_solves_it(tmp_path):
    path = tmp_path / "problem.h5"
    session = Session(replace(BLOCK, export=path, export_at=0.3, duration=0.3))
    session.prepare()
    held = []
    take = session.export.take
    session.export.take = lambda rig: (take(rig), held.append(rig.state.engine.r.copy()))
    done = session.run()
    assert done.result["export"] == f"{path}: 16 contacts at 0.3 s"
    problem = read_problem(path)
    assert problem.mu.tolist() == 16 * [0.3]
    (r,) = held
    left = natural_map_residual(problem.w, problem.b, problem.mu, r[: problem.b.size])
    assert left <= session.spec.solver.tolerance * (1 + 1e-9)


def test_the_last_ticks_problem_of_a_run_in_threads_is_exported(tmp_path):
    path = tmp_path / "problem.h5"
    done = run(replace(THREADS, export=path, duration=0.3))
    assert done.status == FINISHED
    assert read_problem(path).mu.size == 16


def test_a_multi_rate_scene_exports_its_contacts_with_the_attachments_eliminated(tmp_path):
    path = tmp_path / "problem.h5"
    done = run(Options("wire", device="mock", lock_step=True, duration=0.2, export=path))
    assert done.status == FINISHED
    problem = read_problem(path)
    assert problem.mu.size > 0 and np.linalg.eigvalsh(problem.w).min() > 0.0


def test_a_run_without_the_problem_that_was_asked_for_says_so_and_fails(tmp_path):
    path = tmp_path / "problem.h5"
    for at, why in ((0.01, "nothing is in contact in this tick"), (9.0, "the run ended before 9 s")):
        done = run(replace(BLOCK, export=path, export_at=at, duration=0.05))
        assert done.status == FAILED and why in done.result["warnings"][-1]
        assert not path.exists()
    with pytest.raises(
        HapticsError, match="--export-at 1: give a positive time, with --export FILE and --lock"
    ):
        Session(replace(THREADS, export=path, export_at=1.0))


# ---- pictures


def coloured(picture, colour):
    """Pixels of that hue and nearly that saturation: light that comes out of a soft body has more of its
    colour, and all other light changes its brightness only."""
    p = picture.astype(float) + 1e-9
    share, wanted = p / p.sum(axis=2, keepdims=True), np.array(colour) / np.sum(colour)
    return int((np.abs(share - wanted).max(axis=2) < 0.04).sum())


def test_a_picture_shows_both_bodies_and_the_contacts_by_their_state():
    colours = "bodies.punch.colour=[0.2, 0.3, 0.9]", "bodies.tissue.colour=[0.9, 0.6, 0.2]"
    done = run(replace(BLOCK, overrides=(*QUICK, *colours)))
    try:
        pictures = take_pictures(done.geometry, done.states, done.view)
    except RenderUnavailable as why:
        pytest.skip(str(why))
    shown = dict(zip((title for title, _ in pictures), (p for _, p in pictures), strict=True))
    pressed = next(title for title in shown if title.startswith("Largest force"))
    state = dict(done.states)[pressed]
    for picture in shown.values():
        assert coloured(picture, (0.2, 0.3, 0.9)) > 2000 and coloured(picture, (0.9, 0.6, 0.2)) > 20000
    # the punch dents what it presses on, and its contacts lie on it
    mobile, fixed = done.geometry.drawables
    assert np.abs(state.vertices[fixed.span] - done.geometry.rest[fixed.span]).max() > 2e-3
    assert len(state.contact_point) == 16 and (state.contact_state != OPEN).any()
    tip = state.vertices[mobile.span]
    near = np.linalg.norm(state.contact_point[:, None] - tip, axis=2).min(axis=1)
    assert near.max() < 1e-12
    # arrows end in a colour of their own, which a picture without contact lacks
    assert len(mobile.fixed) == 16 and len(fixed.fixed) == 66
    np.testing.assert_allclose(
        state.contact_force.sum(axis=0), state.hand_force, atol=1e-12 * np.abs(state.hand_force).max()
    )
