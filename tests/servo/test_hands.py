"""Several hands on one scene: each feels its own tool, through its own device; what stops one stops all."""

import numpy as np
import pytest

import palpo
from palpo.app.devices.protection import limits_of, workspace_of
from palpo.app.report.outcome import FINISHED
from palpo.app.runtime.options import Options
from palpo.app.runtime.replay import replay
from palpo.app.runtime.rigs import Further
from palpo.app.runtime.session import run
from palpo.app.systems.system import make_rig
from palpo.config.load import load_scene, parse_scene
from palpo.config.words import ConfigError
from palpo.haptics.control import finished_reason, is_frozen, request_pause, request_stop, tick_count
from palpo.haptics.device import DEVICE_GONE
from palpo.haptics.drain import drain_rows
from palpo.haptics.drivers import servo_run
from palpo.haptics.errors import HapticsError
from palpo.haptics.reasons import RUNNING, STOP_DEVICE_LOST, STOP_EMERGENCY, STOP_NON_FINITE, STOP_TICK_FAILED
from palpo.haptics.recording import read_recording
from palpo.haptics.row import NAMES, OWN, columns_of
from tests.servo.hand import external

SCENE = """
title = "two balls over a block"
gravity = [0, 0, 0]

[[bodies]]
name = "block"
kind = "tets"
geometry = { kind = "block", size = [0.06, 0.02, 0.06], divisions = [4, 2, 4] }
placement = { position = [0, -0.01, 0] }
material = { youngs_modulus = 20e3, poisson_ratio = 0.3, density = 1000, alpha = 0.0, beta = 0.002 }
fixed = [{ box = [[-1, -0.0201, -1], [1, -0.0199, 1]] }]

[[bodies]]
name = "one"
kind = "rigid"
rate = "high"
geometry = { kind = "sphere", radius = 0.008 }
placement = { position = [0.015, 0.009, 0] }
mass = 0.03

[[bodies]]
name = "two"
kind = "rigid"
rate = "high"
geometry = { kind = "sphere", radius = 0.008 }
placement = { position = [-0.015, 0.009, 0] }
mass = 0.03

[[tools]]
body = "one"
device = { path = [[0, 0.015, 0.009, 0], [0.3, 0.015, 0.005, 0]] }
workspace = { offset = [0.015, 0.009, 0] }

[[tools]]
body = "two"
device = { path = [[0, -0.015, 0.009, 0], [0.2, -0.015, 0.006, 0]] }
workspace = { offset = [-0.015, 0.009, 0] }

[safety]
fade_in = 0
"""


class Hands:
    """Both hands of the scene in a test's own: their devices' ports are filled before each tick."""

    def __init__(self, of_each_tool: str = "") -> None:
        text = SCENE.replace("[[tools]]", f"[[tools]]\n{of_each_tool}")
        spec = parse_scene(text, "hands.toml", ())
        self.rig = make_rig(
            spec, "krylov", lambda _held: external(), workspace_of(spec), limits_of(spec), threads=False,
            further=[Further(lambda _held: external())],
        )  # fmt: skip
        self.servo = self.rig.servo
        self.other = self.servo.led[0]

    def lead(self, one, two, buttons=(0, 0)) -> np.ndarray:
        """A tick at each pair of heights (n,) [m] that the hands are led to; the rows."""
        for down in zip(one, two, strict=True):
            for servo, y, mask in zip((self.servo, self.other), down, buttons, strict=True):
                servo.device_port.position[:] = [0.0, y, 0.0]
                servo.device_port.orientation[:] = [1.0, 0.0, 0.0, 0.0]
                servo.device_port.buttons[0] = mask
            self.rig.lock.advance(1, lambda n: servo_run(self.servo, n))
        return drain_rows(self.servo)


@pytest.fixture
def hands():
    made = Hands()
    yield made
    made.rig.low.close()


def column(rows: np.ndarray, name: str) -> np.ndarray:
    return rows[:, [c.name for c in columns_of(2)].index(name)]


def forces(rows: np.ndarray, of: str, suffix: str = "") -> np.ndarray:
    return np.stack([column(rows, f"{of}_{axis}{suffix}") for axis in "xyz"], axis=1)


DOWN, STAY = np.linspace(0.0, -0.004, 200), np.zeros(200)


def test_a_hand_feels_what_its_own_tool_touches_and_the_other_nothing_of_it(hands):
    rows = hands.lead(DOWN, STAY)
    assert np.abs(forces(rows, "sent")).max() > 0.1
    assert (forces(rows, "sent", "_2") == 0.0).all() and (forces(rows, "force", "_2") == 0.0).all()
    rows = hands.lead(DOWN[::-1], DOWN)
    assert (forces(rows, "force")[-20:] == 0.0).all()
    assert np.abs(forces(rows, "sent", "_2")).max() > 0.1


def test_two_hands_that_do_the_mirror_image_feel_the_mirror_image(hands):
    rows = hands.lead(DOWN, DOWN)
    one, two = forces(rows, "force"), forces(rows, "force", "_2")
    # the mesh is the mirror image of itself but for its diagonals: the whole is, the single facet is not
    assert np.abs(one[-50:, 1].mean() - two[-50:, 1].mean()) < 0.05 * np.abs(one[-50:, 1].mean())


def test_an_emergency_at_one_hand_fades_both_from_that_tick_on(hands):
    hands.lead(DOWN, DOWN)
    rows = hands.lead(np.full(40, -0.004), np.full(40, -0.004), buttons=(0, 3))
    for suffix in ("", "_2"):
        size = np.linalg.norm(forces(rows, "sent", suffix), axis=1)
        assert size[0] > 0.0 and (np.diff(size[:11]) < 0.0).all() and size[-1] == 0.0
    assert finished_reason(hands.servo) == STOP_EMERGENCY


def test_a_device_that_is_lost_stops_both_hands(hands):
    hands.lead(DOWN, DOWN)
    hands.other.device.health[0] = DEVICE_GONE
    rows = hands.lead(np.full(80, -0.004), np.full(80, -0.004))
    for suffix in ("", "_2"):
        assert (forces(rows, "sent", suffix)[-1] == 0.0).all()
    assert finished_reason(hands.servo) == STOP_DEVICE_LOST


def test_a_number_that_is_none_at_one_tool_stops_both_hands_and_reaches_neither(hands):
    hands.lead(DOWN, DOWN)
    hands.rig.lock.side.held[1].tool.v[0, 1] = np.nan
    rows = hands.lead(np.full(80, -0.004), np.full(80, -0.004))
    for suffix in ("", "_2"):
        sent = forces(rows, "sent", suffix)
        assert np.isfinite(sent).all() and (sent[-1] == 0.0).all()
    assert finished_reason(hands.servo) in (STOP_TICK_FAILED, STOP_NON_FINITE)


def test_both_hands_have_faded_before_the_servo_ends_or_stands_still(hands):
    hands.lead(DOWN, DOWN)
    request_pause(hands.servo, True)
    rows = hands.lead(np.full(400, -0.004), np.full(400, -0.004))
    assert is_frozen(hands.servo) and tick_count(hands.servo) < 600
    for suffix in ("", "_2"):
        assert (forces(rows, "sent", suffix)[-1] == 0.0).all()
    request_pause(hands.servo, False)
    hands.lead(np.full(400, -0.004), np.full(400, -0.004))
    assert np.abs(hands.other.sent).max() > 0.05, "both come back"
    request_stop(hands.servo)
    while finished_reason(hands.servo) == RUNNING:
        hands.lead([-0.004], [-0.004])
    assert (hands.servo.sent == 0.0).all() and (hands.other.sent == 0.0).all()


def test_no_hand_gains_energy_by_pressing_what_the_other_presses(hands):
    there = np.linspace(0.0, -0.005, 150)
    path = np.concatenate([there, np.full(100, -0.005), there[::-1], np.zeros(150)])
    shifted = np.roll(path, 60)
    rows = hands.lead(path, shifted)
    work, spent = 0.0, 0.0
    for suffix in ("", "_2"):
        place = np.stack([column(rows, f"p{axis}{suffix}") for axis in "xyz"], axis=1)
        steps = np.diff(place, axis=0)
        force = forces(rows, "force", suffix)
        done = (0.5 * (force[1:] + force[:-1]) * steps).sum(axis=1)
        work, spent = work + done.sum(), spent + np.abs(done).sum()
    assert spent > 1e-4
    # both hands are back where they began, and so is the block: what it gave it had got
    assert work < 1e-3 * spent


def test_a_recording_of_two_hands_is_repeated_bit_for_bit(tmp_path):
    (tmp_path / "hands.toml").write_text(SCENE)
    path = tmp_path / "two.h5"
    outcome = run(
        Options(str(tmp_path / "hands.toml"), device="mock", lock_step=True, record=path, baseline=False)
    )
    assert outcome.status == FINISHED, outcome.result["exit_reason"]
    columns = read_recording(path).columns
    assert {f"{NAMES[k]}_2" for k in OWN} <= set(columns)
    assert np.abs(columns["sent_y_2"]).max() > 0.05
    again = replay(path)
    assert again.result["replay"]["equal"], again.result["exit_reason"]


def test_a_recording_of_one_hand_cannot_lead_two(tmp_path):
    (tmp_path / "hands.toml").write_text(SCENE)
    path = tmp_path / "one.h5"
    run(Options("probe", device="mock", lock_step=True, record=path, baseline=False, duration=0.05))
    with pytest.raises(HapticsError, match="no hand 2"):
        replay(path, str(tmp_path / "hands.toml"))


def test_one_hand_records_what_it_always_has():
    assert columns_of(1) == columns_of(2)[: len(NAMES)]
    assert [c.name for c in columns_of(1)] == list(NAMES)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SCENE.replace('body = "two"', 'body = "one"'), "another hand holds this body already"),
        (SCENE.replace('body = "two"', 'body = "block"'), 'this body is kind = "tets"'),
        (SCENE + '\n[interface]\nkind = "paper"\n', "knows one tool"),
        (SCENE + "\n[device]\npath = [[0, 0, 0, 0]]\n", "the first of the tools has one"),
    ],
)
def test_what_two_hands_cannot_hold_is_refused_in_words(text, said):
    with pytest.raises(ConfigError, match=said):
        parse_scene(text, "hands.toml", ())


def test_a_scene_with_one_tool_has_one_hand():
    assert load_scene("wire").hands == (load_scene("wire"),)


def test_a_state_of_two_hands_is_copied_with_both(tmp_path):
    (tmp_path / "hands.toml").write_text(SCENE)
    state = palpo.load(tmp_path / "hands.toml").build().start()
    state.step(120)
    other = state.copy()
    for one in (state, other):
        led = one.rig.servo.led[0]
        assert led.beside.size == 0 and one.rig.servo.beside[0] == led.address
    ahead = state.step(80)
    before = other.rig.servo.led[0].sent.copy()
    after = state.rig.servo.led[0].sent.copy()
    assert np.abs(after - before).max() > 0.0, "the other stays where it was"
    np.testing.assert_array_equal(other.step(80).force, ahead.force)
    np.testing.assert_array_equal(other.rig.servo.led[0].sent, after)


def test_at_rest_each_hand_feels_the_spring_that_holds_its_tool_whichever_feedback_it_has():
    """Where nothing is accelerated reaction and constraint sum agree: k times what the tool stays behind."""
    made = Hands('feedback = "reaction"')
    down, still = np.linspace(0.0, -0.003, 200), np.full(600, -0.003)
    try:
        rows = made.lead(np.concatenate([down, still]), np.concatenate([0.5 * down, 0.5 * still]))
    finally:
        made.rig.low.close()
    stiffness = made.rig.spec.tool.hold.stiffness
    for suffix in ("", "_2"):
        pulled = column(rows, f"held_y{suffix}")[-1] - column(rows, f"py{suffix}")[-1]
        felt, touched = (forces(rows, of, suffix)[-1, 1] for of in ("force", "sum"))
        assert felt > 0.1
        assert abs(felt - stiffness * pulled) < 1e-3 * felt
        assert abs(felt - touched) < 1e-3 * felt
