"""The report of a run: everything in one page, and a sentence for what is not there."""

import base64
import re

import numpy as np
import pytest
from PIL import Image

from palpo.app.report.animation import animated
from palpo.app.report.page import ANIMATION, number, write_report
from palpo.app.runtime.machine import machine_info, realtime_permission
from palpo.physics.numerics.errors import InputError

T = np.arange(400) / 1000.0
FORCE = np.c_[0 * T, np.sin(8 * T), 0 * T]
EDGES = np.r_[0.0, np.geomspace(1.0, 1000.0, 20)]
TIMES = {"p50": 20.0, "p99": 61.5, "p999": 70.0, "max": 71.0}
RESULT = {
    "title": "Probe <on> a block",
    "scene": "probe",
    "device": "mock",
    "interface": "krylov",
    "duration_s": 0.4,
    "exit_reason": "finished",
    "warnings": ["the servo ran at normal priority"],
    "servo": {
        "rate_hz": 1000,
        "steps": 400,
        "missed": np.int64(2),
        "stale": 0,
        "late_us": TIMES,
        "step_us": TIMES,
    },
    "slow": {
        "rate_hz": 50,
        "steps": 20,
        "overruns": 0,
        "contacts_max": 5,
        "step_ms": TIMES,
        "by_step_ms": {"L1 proximity": TIMES, "L6 solve": TIMES},
    },
    "force_N": {"final": [0.0, 0.25, 0.0], "mean_last_half_second": [0.0, 0.2, 0.0], "max_norm": 1.234},
    "penetration_m": {"max": 2.5e-4},
    "mass_kg": {"block": 0.432},
    "clock_baseline_us": TIMES,
}
SERIES = {
    "time_s": T,
    "force_commanded_N": 1.1 * FORCE,
    "force_sent_N": FORCE,
    "position_m": 0.01 * FORCE,
    "held_m": 0.009 * FORCE,
    "low_time_s": T[::20],
    "contacts": np.ones((20, 4), int),
    "late_edges_us": EDGES,
    "late_counts": np.arange(20),
    "step_edges_us": EDGES,
    "step_counts": np.arange(20)[::-1],
}
PICTURES = [("At the end", np.full((30, 40, 3), 200, np.uint8))]
FIGURES = ("force", "position", "contacts", "servo_times", "slow_steps")


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report") / "made" / "on the way"
    return write_report(folder, RESULT, SERIES, PICTURES, 'name = "probe"  # <scene>', {"processor": "a & b"})


def test_the_page_needs_nothing_from_outside(full):
    page = full.read_text(encoding="utf-8")
    assert not re.search(r"<script[^>]|<link|https?://|@import|url\(|fetch\(|import\(", page)
    sources = re.findall(r'src="([^"]*)"', page)
    assert len(sources) == len(FIGURES) + len(PICTURES)
    assert all(source.startswith("data:image/png;base64,") for source in sources)


def test_the_pictures_inside_are_those_beside(full):
    page = full.read_text(encoding="utf-8")
    inside = {base64.b64decode(code) for code in re.findall(r"base64,([^\"]*)", page)}
    beside = list(full.parent.glob("*.png"))
    assert inside == {path.read_bytes() for path in beside}
    assert {path.stem for path in beside} == {*FIGURES, "picture_01_at_the_end"}
    with Image.open(full.parent / "picture_01_at_the_end.png") as picture:
        assert picture.size == (40, 30)


def test_an_animation_stands_in_the_page_and_beside_it_until_a_report_without(tmp_path):
    moving = animated([np.full((30, 40, 3), grey, np.uint8) for grey in (0, 255)], [0.0, 0.1])
    page = write_report(tmp_path, RESULT, SERIES, PICTURES, "", {}, film=moving)
    code = re.search(r'src="data:image/gif;base64,([^"]*)"', page.read_text(encoding="utf-8")).group(1)
    assert base64.b64decode(code) == moving == (tmp_path / ANIMATION).read_bytes()
    with Image.open(tmp_path / ANIMATION) as film:
        assert film.n_frames == 2
    write_report(tmp_path, RESULT, SERIES, PICTURES, "", {})
    assert not (tmp_path / ANIMATION).exists()


def test_every_headline_figure_is_on_the_page(full):
    page = full.read_text(encoding="utf-8")
    for words in ("1.234 N", "0.25 mm", "0.5 % of the ticks", "61.5 µs", "61.5 ms", "0.432 kg", "L6 solve"):
        assert words in page
    assert "the servo ran at normal priority" in page


def test_what_users_write_is_shown_and_never_becomes_markup(full):
    page = full.read_text(encoding="utf-8")
    assert "Probe &lt;on&gt; a block" in page
    assert "# &lt;scene&gt;" in page
    assert "a &amp; b" in page
    assert "<scene>" not in page


def test_an_empty_run_has_a_page_that_says_what_is_missing(tmp_path):
    why = "OpenGL is not available here."
    page = write_report(tmp_path, {}, {}, [], "", {}, no_pictures=why).read_text(encoding="utf-8")
    assert "<img" not in page
    reasons = re.findall(r'class="why">([^<]*)<', page)
    assert reasons[0] == why
    assert len(reasons) == len(FIGURES) + 5  # pictures, times, counts, machine, configuration
    assert all(reason.endswith(".") for reason in reasons)


@pytest.mark.parametrize("missing", list(SERIES))
def test_any_one_series_may_be_missing(tmp_path, missing):
    rest = {name: values for name, values in SERIES.items() if name != missing}
    page = write_report(tmp_path, RESULT, rest, [], "", {}).read_text(encoding="utf-8")
    optional = {"force_commanded_N", "held_m"}
    expected = 0 if missing in optional else 2 if missing == "time_s" else 1
    assert page.count("<img") == len(FIGURES) - expected


def test_a_run_that_ended_in_numbers_that_are_not_finite_is_reported(tmp_path):
    broken = FORCE.copy()
    broken[300:] = np.nan
    result = RESULT | {
        "force_N": {"final": [np.nan] * 3, "max_norm": np.nan},
        "exit_status": 3,
        "exit_reason": "NaN",
    }
    page = write_report(tmp_path, result, SERIES | {"force_sent_N": broken}, [], "", {})
    text = page.read_text(encoding="utf-8")
    assert "not finite" in text
    assert 'class="fact bad">NaN' in text


def test_a_servo_that_made_no_tick_has_no_histogram(tmp_path):
    series = SERIES | {"late_counts": np.zeros(20)}
    assert "made no tick" in write_report(tmp_path, RESULT, series, [], "", {}).read_text(encoding="utf-8")


def test_series_that_do_not_fit_together_are_named(tmp_path):
    page = write_report(tmp_path, RESULT, SERIES | {"contacts": np.ones(3)}, [], "", {})
    assert "has 3 values in contacts where 20 belong" in page.read_text(encoding="utf-8")


def test_a_second_report_leaves_no_figure_of_the_first(tmp_path):
    write_report(tmp_path, RESULT, SERIES, PICTURES, "", {})
    write_report(tmp_path, {}, {}, [], "", {})
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_an_unwritable_folder_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(InputError) as refused:
        write_report(tmp_path / "file" / "report", RESULT, SERIES, [], "", {})
    message = str(refused.value)
    assert str(tmp_path / "file" / "report") in message
    assert "--report" in message
    assert message.endswith(".")
    assert "\n" not in message


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (1234567, "1,234,567"),
        (np.int64(5), "5"),
        (0.00012345678, "0.0001235"),
        (float("nan"), "not finite"),
        (None, "–"),
        (np.array([0.5, 1.0]), "(0.5, 1)"),
        (True, "True"),
    ],
)
def test_numbers_are_written_for_people(value, words):
    assert number(value) == words


def test_the_machine_is_described():
    info = machine_info()
    assert int(info["cores available"]) >= 1
    assert info["numpy"] == np.__version__
    assert "SCHED_FIFO" in realtime_permission() or "not offered" in realtime_permission()
    assert all(isinstance(value, str) and value for value in info.values())
