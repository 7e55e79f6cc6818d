"""What `import palpo` promises: it is quick and changes nothing, scenes are values, and results are those of
the program."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import palpo
from palpo.app.library import blas

ROOT = Path(__file__).parents[2]


def script(text, folder, **environment):
    """What a script in a folder prints."""
    path = folder / "script.py"
    path.write_text(text, encoding="utf-8")
    free = {key: value for key, value in os.environ.items() if not key.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, str(path)], env=free | environment, cwd=folder, text=True, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


# ---- importing


def test_importing_it_loads_nothing_else_and_changes_nothing(tmp_path):
    text = """
import os, sys
before, environment = set(sys.modules), dict(os.environ)
import palpo
new = {name.partition(".")[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)
print(sorted(new), dict(os.environ) == environment, len(palpo.__all__) > 10)
"""
    assert script(text, tmp_path) == ["['palpo']", "True", "True"]


def test_every_name_is_there_and_documented():
    for name in palpo.__all__:
        assert getattr(palpo, name).__doc__
    assert [name for name in dir(palpo) if not name.startswith("_")] == sorted(palpo.__all__)
    with pytest.raises(AttributeError):
        palpo.no_such_name  # noqa: B018


def test_a_users_own_modules_of_our_folders_names_do_not_meet_ours(tmp_path):
    for name in ("app", "config", "physics", "haptics", "render", "studies", "benchmarks", "tests"):
        (tmp_path / f"{name}.py").write_text(f'OWNER = "the user, {name}"\n')
    text = """
import config, app, render
import palpo
model = palpo.load("beams").build()
state = model.start()
state.step(40)
import physics, haptics
print(*[module.OWNER.split()[-1] for module in (config, app, render, physics, haptics)], state.tick)
"""
    assert script(text, tmp_path) == ["config", "app", "render", "physics", "haptics", "40"]


def test_threads_of_blas_are_given_back(monkeypatch):
    monkeypatch.setattr(blas, "NUMPY_WAS_FIRST", True)
    found = blas.controls(len(sys.modules))
    assert found
    before = [ask() for ask, _ in found]
    seen = blas.single_threaded(lambda: [ask() for ask, _ in found])
    try:
        for _, tell in found:
            tell(2)
        given = [ask() for ask, _ in found]
        assert seen() == [1] * len(found)
        assert [ask() for ask, _ in found] == given
        with pytest.raises(ZeroDivisionError):
            blas.single_threaded(lambda: 1 / 0)()
        assert [ask() for ask, _ in found] == given
    finally:
        for (_, tell), threads in zip(found, before, strict=True):
            tell(threads)


# ---- scenes


@pytest.mark.parametrize("name", palpo.scenes())
def test_a_scene_as_text_is_the_scene(name):
    scene = palpo.load(name, {"rates.render_hz": 24})
    assert scene != palpo.load(name)
    assert palpo.load(scene.to_toml(), folder=scene.spec.origin.path.parent) == scene
    assert palpo.load(palpo.load(name).to_toml(), folder=scene.spec.origin.path.parent) == palpo.load(name)


def test_values_are_put_in_as_by_set():
    from palpo.config.load import load_scene

    told = load_scene("wire", ["bodies.wire.material.youngs_modulus=3 GPa", "friction.default=0.25"])
    keys = palpo.load("wire", {"bodies.wire.material.youngs_modulus": "3 GPa", "friction.default": 0.25})
    assert keys.spec.model_dump() == told.model_dump()
    tables = palpo.load("wire", {"bodies.wire.material.youngs_modulus": 3e9}, friction={"default": 0.25})
    assert tables == keys
    assert palpo.load("wire").with_(gravity=np.array([0.0, -1.62, 0.0])).spec.gravity == (0.0, -1.62, 0.0)


def test_a_scene_never_changes():
    scene = palpo.load("wire")
    other = scene.with_(friction={"default": 0.9})
    assert scene.spec.friction.default == 0.3 and other.spec.friction.default == 0.9
    for change in (lambda: setattr(scene, "name", "x"), lambda: setattr(scene.spec.friction, "default", 1.0)):
        with pytest.raises((AttributeError, ValueError)):
            change()
    model = palpo.load("beams").build()
    with pytest.raises(ValueError, match="read-only"):
        model.held[0] = 1.0


BALL = {
    "title": "A ball in the hand",
    "bodies": [
        {"name": "floor", "kind": "plane"},
        {
            "name": "ball", "kind": "rigid", "rate": "high", "density": 1200.0,
            "geometry": {"kind": "sphere", "radius": "10 mm"}, "placement": {"position": [0, 0.05, 0]},
        },
    ],
    "tool": {"body": "ball", "feedback": "reaction", "hold": {"stiffness": 800.0}},
}  # fmt: skip


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: palpo.load("wirr"), 'did you mean "wire"'),
        (lambda: palpo.load("wire", frictoin={"default": 0.4}), "frictoin: unknown key"),
        (lambda: palpo.load("wire", {"friction.default": -1}), "friction.default = -1 is too small"),
        (lambda: palpo.load("wire", {"bodies.wyre.radius": 1}), 'did you mean "wire"'),
        (lambda: palpo.load("wire", gravity={1, 2}), "gravity: a set is no value"),
        (lambda: palpo.load("no = toml = at all"), "is not valid TOML"),
        (lambda: palpo.load("snap").build("krylov"), "multi-rate"),
        (lambda: palpo.run("wire", device="glove"), "there is no such device"),
        (lambda: palpo.run("wire", duration=-1.0), "positive number of seconds"),
        (lambda: palpo.replay("no-such-recording.h5"), "no-such-recording.h5"),
        (lambda: palpo.restore("no-such-state.palpo"), "no-such-state.palpo"),
        (lambda: palpo.solve(np.eye(3)), "give b"),
        (lambda: palpo.solve(np.eye(3), [0, 0], [0.3]), "b of shape"),
        (
            lambda: palpo.solve(np.eye(3), [0, 0, 0], [0.3], solver="newtown"),
            "newtown: there is no such solver",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_in_words(call, words):
    with pytest.raises(palpo.Refusal, match=words):
        call()


def test_steps_of_no_sense_are_refused():
    state = palpo.load(BALL).build().start()
    for arguments, words in (
        ({"hand": [0, 0]}, "shape"),
        ({"hand": [0, np.nan, 0]}, "not finite"),
        ({"ticks": -1}, "whole number"),
        ({"hand": np.zeros((4, 3)), "ticks": 5}, "4 and 5|5 and 4"),
        ({"orientation": [0, 0, 0, 0]}, "length zero"),
    ):
        with pytest.raises(palpo.Refusal, match=words):
            state.step(**arguments)
    assert state.tick == 0
    state.step(hand=state.hand.position)
    with pytest.raises(palpo.Refusal, match="led by hand="):
        state.step(1)
    with pytest.raises(palpo.Refusal, match="no contact problem"):
        state.problem()


# ---- what is computed


def test_a_scene_of_tables_rests_in_the_hand_with_its_weight():
    state = palpo.load(BALL).build().start()
    mass = state.model.masses["ball"]
    for _ in range(2):
        done = state.step(hand=state.hand.position, ticks=1000)
    assert done.force[-1] == pytest.approx([0.0, -9.81 * mass, 0.0], rel=1e-6, abs=1e-9)
    # the virtual coupling yields by the weight over its stiffness
    sag = state.hand.position[1] - state.tool.position[1]
    assert sag == pytest.approx(9.81 * mass / 800.0, rel=1e-6)
    # what moves is where the tool is: the ball's centre
    assert state.positions["ball"].mean(axis=0) == pytest.approx(state.tool.position, abs=1e-6)


def test_the_hand_goes_where_it_is_led():
    state = palpo.load(BALL).build().start()
    start = state.hand.position
    goal = start + np.array([0.0, 0.0, 0.01])
    done = state.step(hand=goal, ticks=100, orientation=[np.cos(0.1), 0, 0, np.sin(0.1)])
    assert np.array_equal(state.hand.position, goal)
    np.testing.assert_allclose(np.diff(done.hand[:, 2]), 1e-4, rtol=1e-9)
    assert state.hand.orientation == pytest.approx([np.cos(0.1), 0, 0, np.sin(0.1)], abs=1e-12)
    rows = start + np.linspace(0.01, 0.0, 50)[:, None] * [0.0, 0.0, 1.0]
    assert np.array_equal(state.step(hand=rows).hand, rows) and state.tick == 150


@pytest.mark.parametrize("name", ["hapco-soft", "snap"])
def test_no_closed_way_of_the_hand_gains_energy(name):
    """Elastic bodies give back at most what they took; friction and damping keep the rest."""
    model = palpo.load(name).build()
    state, deepest = model.start(), min(model.scene.spec.device.path, key=lambda row: row[2])[1:]
    state.step(hand=model.held, ticks=20)
    there = state.step(hand=deepest, ticks=400)
    back = state.step(hand=model.held, ticks=400)
    rest = state.step(hand=model.held, ticks=20)
    whole = palpo.Ticks(*map(np.concatenate, zip(there, back, rest, strict=True)))
    taken = -there.work
    assert taken > 1e-6
    # the trapezoidal rule errs by what the force changes in a tick, over a tick's way
    error = np.abs(np.diff(whole.force, axis=0)).max() * np.abs(np.diff(whole.hand, axis=0)).max()
    assert whole.work < 0.02 * taken + error


@pytest.mark.parametrize("name", ["wire", "hapco-soft", "snap", "suction-cube"])
def test_a_state_that_follows_the_scenes_hand_is_the_run_in_lock_step(name):
    done = palpo.run(name, duration=0.5, lock_step=True)
    assert done.status == 0 and done.result["exit_reason"] == "finished"
    ticks = palpo.load(name).build().start().step(500)
    for axis, column in enumerate(ticks.force.T):
        np.testing.assert_array_equal(done.series["force_commanded_N"][:500, axis], column)


def test_a_run_shows_itself_and_can_be_replayed(tmp_path):
    seen = []
    done = palpo.run(
        palpo.load(BALL, device={"path": [[0, 0, 0.05, 0], [0.3, 0, 0.02, 0]]}), lock_step=True,
        record=tmp_path / "run.h5", watch=lambda state: seen.append(state.time),
    )  # fmt: skip
    assert done.status == 0 and seen == sorted(seen) and len(seen) > 10
    again = palpo.replay(tmp_path / "run.h5")
    assert again.status == 0 and again.result["replay"]["equal"]


def test_a_sliding_contact_is_solved_in_closed_form():
    """One contact, W = w I: r_n = -b_n / w, and beyond the cone r_t = -mu r_n b_t / |b_t|."""
    w, mu, b = 2e-3, 0.3, np.array([-1e-3, 4e-3, -3e-3])
    found = palpo.solve(w * np.eye(3), b, [mu])
    normal = 1e-3 / w
    assert found.r == pytest.approx([normal, -0.8 * mu * normal, 0.6 * mu * normal], rel=1e-7)
    assert found.converged and found.residual <= 1e-8 and found.iterations >= 0
    dragged = palpo.load("hapco-block").build().start()
    dragged.step(hand=[0.0, 0.04, 0.0], ticks=100)
    problem = dragged.problem()
    for solver in (None, "anderson"):
        answer = palpo.solve(problem, solver=solver, tolerance=1e-9)
        assert answer.converged and answer.r[::3].sum() > 0.0
    assert np.array_equal(palpo.solve(problem.w, problem.b, problem.mu).r, palpo.solve(problem).r)
