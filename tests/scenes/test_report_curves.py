"""Curves in a run's page: what can be looked at closely is what was measured, down to a tick, and small."""

import base64
import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from palpo.app.report.curves import LEVELS, MOST, contact_curves, force_curves, position_curves, thinned
from palpo.app.report.page import TEMPLATES, write_report

T = np.arange(4000) * 1e-3
FORCE = np.stack([np.sin(7 * T), np.exp(-T), T], axis=1)
SERIES = {"time_s": T, "force_sent_N": FORCE, "force_commanded_N": 1.2 * FORCE}


def read(curve):
    words = np.frombuffer(base64.b64decode(curve["words"]), "<u2")
    return np.where(words == LEVELS + 1, np.nan, curve["low"] + words * curve["step"])


def by_name(told, panel=0):
    return {curve["name"]: read(curve) for curve in json.loads(told)["panels"][panel]["curves"]}


def test_a_curve_on_the_page_is_the_one_that_was_measured_within_a_level():
    told = force_curves(SERIES)
    for k, axis in enumerate("xyz"):
        for name, values in ((f"{axis} sent", FORCE[:, k]), (f"{axis} commanded", 1.2 * FORCE[:, k])):
            assert np.abs(by_name(told)[name] - values).max() <= 0.51 * np.ptp(values) / LEVELS
    norm = np.linalg.norm(FORCE, axis=1)
    np.testing.assert_allclose(by_name(told, 1)["sent"], norm, atol=np.ptp(norm) / LEVELS)
    assert json.loads(told)["to"] == T[-1]


@pytest.mark.parametrize("n", [MOST, MOST + 1, 60_001, 1_200_000])
def test_a_long_run_keeps_its_peaks_and_their_moments_in_few_numbers(n):
    values = 1e-3 * np.sin(np.arange(n) / 50)
    places = np.array([7, n // 3, n - 2])
    values[places] = [5.0, -4.0, 3.0]
    few = thinned(values)
    assert len(few) <= MOST
    for place, peak in zip(places, values[places], strict=True):
        at = np.flatnonzero(few == peak)
        assert len(at) == 1
        # a pair of numbers stands for a run of neighbours, and the last run may not be full
        assert at[0] / len(few) == pytest.approx(place / n, abs=4 / len(few))


def test_a_number_that_is_not_finite_leaves_a_gap_and_nothing_else():
    broken = FORCE.copy()
    broken[100:120, 1] = np.nan
    broken[200, 1] = np.inf
    curve = by_name(force_curves(SERIES | {"force_sent_N": broken}))["y sent"]
    assert np.array_equal(np.isnan(curve), ~np.isfinite(broken[:, 1]))


@pytest.mark.parametrize("make", [force_curves, position_curves, contact_curves])
def test_a_run_without_a_series_has_no_curves_of_it(make):
    told = make({})
    assert told == ""
    told = make({"time_s": T, "low_time_s": T})
    assert not told or not any(panel["curves"] for panel in json.loads(told)["panels"])


def test_the_page_of_a_long_run_stays_small(tmp_path):
    t = np.arange(600_000) * 1e-3
    noise = np.random.default_rng(1).normal(size=(len(t), 3))
    path = write_report(
        tmp_path, {}, {"time_s": t, "force_sent_N": noise, "force_commanded_N": noise}, [], "", {}
    )
    bare = write_report(tmp_path / "bare", {}, {"time_s": t[:2], "force_sent_N": noise[:2]}, [], "", {})
    curves = html.unescape(re.search(r'data-curves="([^"]*)"', path.read_text("utf-8")).group(1))
    # 8 curves, 2 bytes a number, 4 letters for 3 bytes; headings beside
    assert len(curves) <= 8 * MOST * 2 * 4 / 3 + 2000
    assert len(curves) < path.stat().st_size
    assert bare.stat().st_size < path.stat().st_size


ASKED = """
const curves = require(process.argv[1]), asked = JSON.parse(process.argv[2]);
console.log(JSON.stringify(asked.map(([name, ...rest]) => {
  const found = curves[name](...rest);
  return found.length !== undefined && typeof found !== "string" ? Array.from(found) : found;
})));
"""


def asked(*calls):
    """What the page's own functions answer."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node to run the page's script with")
    script = Path(TEMPLATES / "curves.js").resolve()
    command = [node, "-e", ASKED, str(script), json.dumps(calls)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_the_script_reads_what_was_written():
    curve = json.loads(force_curves(SERIES))["panels"][0]["curves"][1]
    (values,) = asked(("unpacked", curve))
    np.testing.assert_allclose(values, read(curve), rtol=1e-12, atol=1e-15)


def test_a_zoom_keeps_the_moment_under_the_pointer_and_stays_within_the_run():
    whole = [0.0, 8.0]
    for span, at, factor in (([0.0, 8.0], 3.0, 0.5), ([2.0, 4.0], 3.9, 0.2), ([2.0, 4.0], 2.5, 1.5)):
        ((low, high),) = asked(("zoomed", span, whole, at, factor))
        assert high - low == pytest.approx(factor * (span[1] - span[0]))
        assert (at - low) / (high - low) == pytest.approx((at - span[0]) / (span[1] - span[0]))
    assert asked(("zoomed", [1.0, 7.0], whole, 2.0, 9.0))[0] == pytest.approx(whole, abs=1e-12)
    (tiny,) = asked(("zoomed", [2.0, 2.001], whole, 2.0, 1e-9))
    assert tiny[1] - tiny[0] == pytest.approx(1e-4 * 8.0)
    assert asked(("shifted", [2.0, 3.0], whole, -5.0), ("shifted", [2.0, 3.0], whole, 9.0)) == [
        [0, 1],
        [7, 8],
    ]


def test_what_is_shown_are_the_numbers_of_the_span_and_a_neighbour():
    spans = ([0.0, 8.0], [1.0, 1.5], [3.01, 3.02])
    for span, (first, last) in zip(
        spans, asked(*(("shown", s, [0.0, 8.0], 8001) for s in spans)), strict=True
    ):
        assert first / 1000 <= span[0] + 1e-9 and span[0] - first / 1000 <= 1.001e-3
        assert last / 1000 >= span[1] - 1e-9 and last / 1000 - span[1] <= 1.001e-3


def test_the_marks_of_an_axis_are_round_and_some_five():
    for low, high in ((0.0, 1.0), (-3.7, 12.2), (0.1234, 0.1235), (-1e-6, 2e-6), (0.0, 4e5)):
        (marks,) = asked(("ticks", low, high, 5))
        assert 2 <= len(marks["found"]) <= 11
        assert min(marks["found"]) >= low - 1e-9 * (high - low) and max(marks["found"]) <= high + 1e-9 * (
            high - low
        )
        assert marks["step"] / 10 ** np.floor(np.log10(marks["step"]) + 1e-9) == pytest.approx(
            min(
                (1, 2, 5, 10),
                key=lambda k: abs(k - marks["step"] / 10 ** np.floor(np.log10(marks["step"]) + 1e-9)),
            )
        )
