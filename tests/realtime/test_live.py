"""What an operator changes while a scene runs: when it takes effect, what is refused, that it is repeated."""

import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from palpo.app.report.outcome import FAILED, FINISHED
from palpo.app.runtime.live import change_text, changed, live_keys, way_to
from palpo.app.runtime.options import Options
from palpo.app.runtime.replay import replay
from palpo.app.runtime.session import Session
from palpo.app.systems.multirate.build import build_scene
from palpo.config.load import load_scene
from palpo.config.words import ConfigError
from palpo.haptics.control import is_frozen, tick_count
from palpo.haptics.flags import FADING, PAUSING, RATE_LIMITED
from palpo.haptics.recording import read_recording
from palpo.physics.systems.multirate.lock_step import LockStep
from tests.realtime.test_session import TOUCHING
from tests.scenes.runs import columns_of, force

KEPT = "rates.adapt=false"
"""A slow machine changes no slow period: the tests count in it."""
PROBE = Options(
    "probe", (*TOUCHING, KEPT, "safety.fade_in=0.05"), device="mock", baseline=False, duration=0.9
)
SHIPPED = ("beams", "wire", "needle", "probe")


PRESSED = "device.path=[[0, 0, 0.041, 0], [0.2, 0, 0.035, 0]]"


@pytest.mark.parametrize("scene", SHIPPED)
def test_every_live_key_of_every_scene_can_be_changed_within_its_bounds(scene):
    spec = load_scene(scene)
    for live in live_keys(spec):
        if live.choices:
            assert live.value in live.choices
            continue
        assert live.lower <= live.value <= live.upper, live.key
        value = 0.5 * (live.lower + live.upper)
        after = changed(spec, change_text(spec, live.key, value))
        now = {other.key: other.value for other in live_keys(after)}[live.key]
        # counts are whole numbers
        assert now == pytest.approx(value, rel=1e-12, abs=0.5 if "sweeps" in live.key else 0.0)


def test_a_hundred_changes_of_one_key_leave_one_override():
    spec = load_scene("probe")
    for i in range(100):
        spec = changed(spec, change_text(spec, "friction.default", 0.01 * i))
    assert spec.origin.overrides == ("friction.default=0.99",)


@pytest.mark.parametrize("scene", SHIPPED)
def test_what_the_hand_feels_goes_over_in_even_steps_and_solvers_at_once(scene):
    spec, steps = load_scene(scene), 5
    for live in live_keys(spec):
        if live.choices:
            continue
        goal = 0.3 * live.lower + 0.7 * live.upper
        texts = way_to(spec, change_text(spec, live.key, goal), steps)
        at_once = live.group == "solver" or live.key.endswith(".poisson_ratio") or live.key in (
            "workspace.force_scale", "safety.max_force", "contact.clusters",
        )  # fmt: skip
        assert len(texts) == (1 if at_once else steps), live.key
        values, now = [live.value], spec
        for text in texts:
            now = changed(now, text)
            values.append(next(other.value for other in live_keys(now) if other.key == live.key))
        if not at_once:
            assert np.diff(values) == pytest.approx((goal - live.value) / steps, rel=1e-9), live.key


def test_a_second_change_of_a_key_goes_on_from_where_the_first_has_come():
    session = Session(Options("probe", device="mock", lock_step=True, duration=1.0))
    session.prepare()
    slow, seen = session.slow, []
    for value in (0.5, 1.0):
        session.change("friction.default", value)
        for _ in range(3 if value == 0.5 else 6):
            slow.take_changes()
            seen.append(session.rig.spec.friction.default)
    first = load_scene("probe").friction.default
    here = first + 0.6 * (0.5 - first)
    assert seen[:3] == pytest.approx([first + k / 5 * (0.5 - first) for k in (1, 2, 3)])
    assert seen[3:] == pytest.approx([here + min(k, 5) / 5 * (1.0 - here) for k in range(1, 7)])
    session.rig.low.close()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rates.low_hz=25", "cannot be changed while the scene runs"),
        ("friction.default=-1", "friction.default = -1 is too small"),
        ("tool.hold.stiffness=nan", "not finite"),
    ],
)
def test_what_cannot_be_changed_is_refused_in_words(text, said):
    with pytest.raises(ConfigError, match=said):
        changed(load_scene("probe"), text)


def test_a_change_reaches_the_servo_with_the_next_frame_and_not_before():
    spec = load_scene("probe", TOUCHING)
    lock = LockStep(build_scene(spec), "krylov", "none")
    from palpo.app.systems.multirate.build import change_scene
    from palpo.physics.engine.servo import run_ticks

    def ticks(n):
        run_ticks(lock.handle, n)

    lock.advance(20, ticks)
    change_scene(lock.scene, changed(spec, "friction.default=0.9"))
    change_scene(lock.scene, changed(changed(spec, "friction.default=0.9"), "gravity=[0, -3.0, 0]"))
    before = lock.high.mu.max(), lock.high.held.chain.model.gravity[1]
    lock.advance(20, ticks)
    assert before == (spec.friction.default, spec.gravity[1])
    assert (lock.high.mu.max(), lock.high.held.chain.model.gravity[1]) == (0.9, -3.0)
    assert [member.body.gravity[1] for member in lock.scene.members] == [-3.0]
    lock.close()


def act(session, *steps):
    """Run a session in threads while somebody acts in turn: (tick, or what must hold first; what)."""
    waiting = list(steps)

    def due(when):
        return when() if callable(when) else tick_count(session.rig.servo) >= when

    def watch(_state, _fresh):
        if waiting and due(waiting[0][0]):
            waiting.pop(0)[1]()
        time.sleep(1e-3)

    session.prepare()
    done = session.run(watch)
    assert not waiting
    return done


def test_a_run_in_threads_with_changes_and_a_pause_is_repeated_bit_for_bit(tmp_path):
    path = tmp_path / "run.h5"
    session = Session(replace(PROBE, record=path, duration=60))
    stood = []

    def step():
        stood.append(tick_count(session.rig.servo))
        session.step_once()

    done = act(
        session,
        (200, lambda: session.change("friction.default", 0.8)),
        (250, lambda: session.change("workspace.force_scale", 0.5)),
        (350, lambda: session.pause(True)),
        (lambda: is_frozen(session.rig.servo), step),
        (lambda: tick_count(session.rig.servo) == stood[0] + 20, lambda: session.pause(False)),
        (600, lambda: session.change("safety.max_force", 0.1)),
        (650, lambda: session.change("tool.hold.stiffness", 250.0)),
        (lambda: session.rig.servo.port.live["max_force"][0] == 0.1, lambda: None),
        (lambda: session.rig.spec.tool.hold.stiffness == 250.0, lambda: None),
        (lambda: session.rig.high.held.hold.gains[0].stiffness == 250.0, session.end),
    )
    assert done.status == FINISHED
    recording = read_recording(path)
    made: dict[str, list[int]] = {}
    for step, text in recording.changes:
        made.setdefault(text.partition("=")[0], []).append(step)
    assert list(made) == [
        "friction.default", "workspace.force_scale", "safety.max_force", "tool.hold.stiffness",
    ]  # fmt: skip
    # what the hand feels goes over in a tenth of a second, a share at each slow step of 20 ms
    for key in ("friction.default", "tool.hold.stiffness"):
        assert np.diff(made[key]).tolist() == [1, 1, 1, 1]
    assert (recording.columns["flags"] & PAUSING).any()
    again = replay(path)
    assert again.result["replay"]["equal"], again.result["exit_reason"]


def test_the_force_is_scaled_and_limited_as_the_operator_says(tmp_path):
    path = tmp_path / "run.h5"
    session = Session(replace(PROBE, overrides=(*PROBE.overrides, PRESSED), record=path, duration=60))
    asked_at = {}

    def later(entry, value):
        """Whether the servo has had that value for 300 ticks."""
        servo = session.rig.servo
        if servo.port.live[entry][0] == value and entry not in asked_at:
            asked_at[entry] = tick_count(servo)
        return entry in asked_at and tick_count(servo) > asked_at[entry] + 300

    done = act(
        session,
        (400, lambda: session.change("workspace.force_scale", 0.25)),
        (lambda: later("force_scale", 0.25), lambda: session.change("safety.max_force", 0.05)),
        (lambda: later("max_force", 0.05), session.end),
    )
    assert done.status == FINISHED
    columns = columns_of(path)
    asked, sent = force(columns), force(columns, "sent")
    # the change comes with a frame, whenever that is; ticks under a fade or the limit of the rate aside
    plain = (columns["flags"] & (FADING | RATE_LIMITED)) == 0
    whole, quarter = (np.linalg.norm(sent - share * asked, axis=1) < 1e-12 for share in (1.0, 0.25))
    came = int(np.flatnonzero(plain & quarter & (np.linalg.norm(asked, axis=1) > 0.2))[0])
    assert came > 400
    assert columns["frame"][came] > columns["frame"][399]
    # it goes over in 100 even steps, of which the last has brought the quarter
    began = came - 99
    assert (whole | ~plain)[:began].all()
    here = slice(began, came)
    shares = (sent[here] * asked[here]).sum(axis=1) / (asked[here] ** 2).sum(axis=1)
    even = 1.0 - 0.0075 * np.arange(1, 100)
    assert shares[plain[here]] == pytest.approx(even[plain[here]], abs=1e-9)
    assert (quarter | ~plain)[came : came + 290].all()
    assert np.linalg.norm(sent[-250:], axis=1).max() <= 0.05 * (1 + 1e-12)
    assert np.linalg.norm(asked[-250:], axis=1).min() > 0.2


@pytest.mark.parametrize("where", ["the looking thread", "another thread"])
def test_an_error_in_any_thread_ends_in_a_fade_and_keeps_the_recording(tmp_path, where):
    path = tmp_path / "run.h5"
    session = Session(replace(PROBE, record=path))

    def fail():
        raise ValueError("out of ink")

    if where == "another thread":
        done = act(session, (400, lambda: threading.Thread(target=fail, name="painter").start()))
        assert done.status == FAILED
        said = done.result["exit_reason"]
        assert said.startswith(
            'the thread "painter" stopped: an error of the program: ValueError: out of ink; '
        )
    else:
        with pytest.raises(ValueError, match="out of ink"):
            act(session, (400, fail))
    columns = columns_of(path)
    assert len(columns["tick"]) < 900
    size = np.linalg.norm(force(columns, "sent"), axis=1)
    assert size[380] > 0.2
    ramp = size[-50:] / np.linalg.norm(force(columns)[-50:], axis=1).clip(1e-9)
    assert size[-1] == 0.0
    assert (np.diff(ramp) < 1e-3).all()


def test_a_slow_loop_that_hangs_costs_the_force_but_not_the_run(tmp_path, monkeypatch):
    path = tmp_path / "run.h5"
    session = Session(replace(PROBE, overrides=(*PROBE.overrides, PRESSED), record=path, duration=60))
    session.prepare()
    make, hung = session.rig.low.step, []

    def slow():
        """Begin a slow step; the first after 600 ticks, when the hand presses, waits for 600 ticks more."""
        servo = session.rig.servo
        if not hung and tick_count(servo) >= 600:
            hung.append(tick_count(servo))
            while tick_count(servo) < hung[0] + 600:
                time.sleep(1e-3)
            hung.append(tick_count(servo))
        return make()

    def watch(_state, _fresh):
        # when the force is back, however late the frames of a busy machine are
        if len(hung) == 2 and np.linalg.norm(session.rig.servo.sent) > 0.25:
            session.end()
        time.sleep(1e-3)

    monkeypatch.setattr(session.rig.low, "step", slow)
    done = session.run(watch)
    assert done.status == FINISHED
    assert done.result["servo"]["limits"]["watchdog_trips"] >= 1
    columns = columns_of(path)
    size = np.linalg.norm(force(columns, "sent"), axis=1)
    start, end = hung
    assert size[:start].max() > 0.2
    # the newest frame is older than the step that hangs; max_age is 250 ms, fade_out 50
    assert size[start + 302 : end].max() == 0.0
    # and the force comes back
    assert size[end:].max() > 0.2
    again = replay(path)
    assert again.result["replay"]["equal"], again.result["exit_reason"]


def test_an_emergency_takes_the_force_in_a_hundredth_of_a_second(tmp_path):
    path = tmp_path / "run.h5"
    session = Session(replace(PROBE, record=path))
    done = act(session, (450, lambda: session.end(emergency=True)))
    assert (done.result["exit_reason"], done.status) == ("emergency stop", FINISHED)
    size = np.linalg.norm(force(columns_of(path), "sent"), axis=1)
    assert size[-12] > 0.2
    assert size[-1] == 0.0
    assert np.count_nonzero(size[-12:]) <= 11


def test_a_recording_may_begin_and_end_while_it_runs(tmp_path):
    session, path = Session(PROBE), tmp_path / "part.h5"
    done = act(session, (300, lambda: session.record(path)), (600, lambda: session.record(None)))
    ticks = columns_of(path)["tick"]
    # rows wait up to 50 ms for the recorder; a busy machine may ask later than at those ticks
    assert 250 <= ticks[0] < ticks[-1] < done.result["servo"]["steps"] - 1
    assert ticks[-1] >= 550
    assert (np.diff(ticks) == 1).all()
