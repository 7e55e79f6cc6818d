"""An examination finds what the stand-in was set to; its profile is what runs use."""

import time
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pytest

from palpo.app.cli import exercise as exercising
from palpo.app.cli.exercise import MARGIN, RAMP, STIFFER
from palpo.app.devices.profile import profile_file, profiled, read_profile, write_profile
from palpo.app.devices.table import choose
from palpo.app.report.exercise_page import PICTURE, write_exercise
from palpo.app.runtime.options import Options
from palpo.app.runtime.session import Session
from palpo.config.schema.profile import DeviceProfile
from palpo.config.schema.tool import HoldSpec
from palpo.config.words import ConfigError
from palpo.haptics.device_spec import TOUCH
from palpo.haptics.errors import HapticsError
from tests.haply.service import ARM, ServiceProcess
from tests.libdhd.stand_in import fresh_stand_in as fresh_dhd
from tests.libhd.stand_in import DEFAULT
from tests.libhd.stand_in import fresh_stand_in as fresh_hd
from tests.realtime.test_dhd import AXES
from tests.realtime.test_haply import AXES as HAPLY_AXES

COUNT, DELAY, FRICTION, MASS = 0.04e-3, 2, 0.3, 0.05
"""Of the stand-in [m], [ticks], [N], [kg]: none is a Touch's."""
GRIP = 300.0, 4.0
REST = np.array([0.01, -0.02, 0.005])
REACH = np.array([[-0.06, -0.03, -0.02], [0.07, 0.05, 0.03]])


class Operator:
    """Does to the stand-in's stylus what is asked for."""

    def __init__(self, stand_in, axes=None):
        """axes: the servo's from the library's; None are the same."""
        self.stand_in, self.at, self.asked = stand_in, REST.copy(), []
        self.axes = np.eye(3) if axes is None else axes
        self.go(REST)

    def go(self, to, seconds=0.0, grip=GRIP):
        start, begun = self.at, time.monotonic()
        while True:
            share = min(1.0, (time.monotonic() - begun) / seconds) if seconds else 1.0
            self.at = start + share * (np.asarray(to, float) - start)
            self.stand_in.held_at(DEFAULT, *(self.at @ self.axes), *grip)
            if share == 1.0:
                return
            time.sleep(2e-3)

    def __call__(self, part, words):
        self.asked.append(part)
        ways = {"right": 0, "up": 1, "toward you": 2}
        if part in ways:
            self.go(self.at + 0.03 * np.eye(3)[ways[part]], 1.0)
            time.sleep(0.2)
        elif part == "reach":
            for corner in REACH:
                self.go(corner, 0.5)
                time.sleep(0.3)
            self.go(REST, 0.3)
            time.sleep(0.2)
        elif part == "let go":
            self.go(REST, grip=(0.0, 0.0))
        else:
            self.go(REST)
            time.sleep(0.5)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module", params=["touch", "forcedimension:1234", "haply"])
def examined(request, home):
    """The findings, profile and page of a stand-in's examination."""
    kind = request.param.partition(":")[0]
    make, axes = {"touch": (fresh_hd, None), "forcedimension": (fresh_dhd, AXES),
                  "haply": (ServiceProcess, HAPLY_AXES)}[kind]  # fmt: skip
    stand_in = make()
    named = f"haply:{stand_in.address}" if kind == "haply" else request.param
    stand_in.mechanics(DEFAULT, COUNT, DELAY, FRICTION, MASS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(home))
        operator, kept = Operator(stand_in, axes), []
        patch.setattr(exercising, "write_exercise", lambda *told: kept.append(told) or write_exercise(*told))
        path, page = exercising.exercise(named, operator, home / "page")
    illegal = {"touch": lambda: stand_in.counts["illegal"], "haply": lambda: stand_in.illegal}
    assert illegal.get(kind, lambda: stand_in.illegal())() == 0
    yield kept[0][1], path, page, named, getattr(stand_in, "turn", 0.0) if kind == "haply" else 0.0
    stand_in.disconnect()


def test_the_encoders_count_axes_and_reach_are_found(examined):
    found, *_ = examined
    # every step is a whole number of counts, to rounding
    assert found.resolution == pytest.approx(COUNT, rel=1e-6) and found.noise <= COUNT
    assert found.axes == {"right": True, "up": True, "toward you": True}
    # the stylus follows its hand but for the way in which the grip's spring meets dry friction
    np.testing.assert_allclose([found.low, found.high], REACH, atol=FRICTION / GRIP[0] + 5e-3)


def test_friction_mass_and_delay_are_found(examined):
    found, *_, turn = examined
    # the stylus has moved before a count shows
    late = (6 * MASS * RAMP**2 * 1.5 * COUNT) ** (1 / 3)
    assert ((found.friction > FRICTION - RAMP * 1e-3) & (found.friction < FRICTION + late)).all()
    assert late < 0.1 * FRICTION
    assert np.abs(found.bias).max() < late
    # a service adds its turns: a force and a pose wait for one each, and so does what lies between
    least, most = (DELAY - 1) * found.dt, (DELAY + 1) * found.dt + 3 * turn
    assert least <= found.answer.delay <= most
    assert found.answer.mass == pytest.approx(MASS, rel=0.1)


def test_its_profile_is_what_a_run_uses_and_never_stiffer_than_half_of_what_was_stable(
    examined, home, monkeypatch
):
    found, path, page, named, _ = examined
    monkeypatch.setenv("XDG_STATE_HOME", str(home))
    profile = read_profile(path)
    serial = {"touch": "T-0001", "haply": ARM}.get(named.partition(":")[0], "1234")
    assert path == profile_file(named) and profile.serial == serial
    assert profile.max_stiffness <= min(found.stable.values()) / MARGIN
    session = Session(Options("probe", device=named, duration=0.2, overrides=("tool.hold.stiffness=50000",)))
    session.prepare()
    session.run()
    assert (
        session.device.friction == profile.friction and session.device.max_stiffness == profile.max_stiffness
    )
    assert session.spec.tool.hold.stiffness == pytest.approx(profile.max_stiffness)
    text = page.read_text("utf-8")
    assert serial in text and "as they should be" in text and (page.parent / PICTURE).stat().st_size > 10_000


def test_a_profile_of_another_device_is_not_used_and_one_that_is_none_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert profiled("touch", "T-0001", TOUCH) is TOUCH
    own = DeviceProfile(
        device="touch", model="Touch", serial="T-0001", max_stiffness=500.0, max_force=99.0, resolution=5e-5,
        friction=0.2, mass=0.05, delay=1e-3,
    )  # fmt: skip
    path = profile_file("touch")
    write_profile(own, path)
    assert read_profile(path) == own
    used = profiled("touch", "T-0001", TOUCH)
    assert (used.max_stiffness, used.max_force, used.friction) == (500.0, TOUCH.max_force, 0.2)
    assert profiled("touch", "T-0002", TOUCH) is TOUCH
    assert profiled("touch", "T-0001", replace(TOUCH, name="Touch X")) is not used
    path.write_text(path.read_text().replace("max_stiffness = 500.0", "max_stiffness = -500.0"))
    with pytest.raises(ConfigError, match=r"touch.toml: max_stiffness = -500"):
        profiled("touch", "T-0001", TOUCH)


def test_without_friction_springs_are_stable_up_to_where_the_sampled_loop_is():
    """The scan ends at the last spring below the boundary of m v' = -K x - B v, held, `DELAY` ticks late."""
    stand_in = fresh_hd()
    stand_in.mechanics(DEFAULT, COUNT, DELAY, 0.0, MASS)
    operator = Operator(stand_in)
    with ExitStack() as stack:
        tried = exercising.Examination(choose(Options("probe", device="touch")), stack, operator)
        tried.found.resolution, tried.found.friction = COUNT, np.zeros(3)
        tried.at_rest()
        tried.springs("let go", "")
    stand_in.disconnect()
    boundary = exact_boundary(HoldSpec().damping)
    ratio = boundary / tried.found.stable["let go"]
    # one step of the scan, and one more: just below the boundary it rings longer than it is watched
    assert 1.0 <= ratio < STIFFER**2


def exact_boundary(damping, h=1e-3, substeps=4):
    """The stiffness [N/m] at which the largest eigenvalue of a tick leaves the unit circle, by bisection."""

    def radius(stiffness):
        n = 3 + DELAY
        tick = np.zeros((n, n))  # x, v, and the forces on their way, the newest first
        for k, state in enumerate(np.eye(n)):
            x, v, *line = state
            line = [-stiffness * x - damping * v, *line]
            for _ in range(substeps):
                v += h / substeps * line[DELAY] / MASS
                x += h / substeps * v
            tick[:, k] = x, v, *line[: DELAY + 1]
        return np.abs(np.linalg.eigvals(tick)).max()

    low, high = 1.0, 1e5
    for _ in range(60):
        middle = np.sqrt(low * high)
        low, high = (middle, high) if radius(middle) < 1.0 else (low, middle)
    return low


@pytest.mark.parametrize("named", ["mock", "replay:x.h5"])
def test_what_nobody_holds_is_not_examined(named):
    with pytest.raises(HapticsError, match="only a real device"):
        exercising.exercise(named, lambda part, words: None)
