"""The studies: their verdicts, their measures against closed forms, and the paper's first experiment."""

import ast
import csv
import json
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from palpo.studies import claims
from palpo.studies.claims import Claim, Reported, Skipped, at_least, at_most, close_to
from palpo.studies.force_errors import averaged, below, compare, rest_and_motion
from palpo.studies.multirate_cases import LANDING_CASE, MultirateCase
from palpo.studies.multirate_wire import crosses, edge_distance, face_distance
from palpo.studies.recording import DATA, data_folder, height_above_axis
from palpo.studies.registry import ABOUT, STUDIES, run_study
from palpo.studies.runs import Ledger, SceneDrive, legs, scene_path

QUIET = Console(quiet=True)
LEARNING = "learning"
RNG = np.random.default_rng(7)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_never_holds(value: float) -> None:
    assert not at_most("x", value, 1.0, "N", "").holds
    assert not at_least("x", value, 1.0, "N", "").holds
    assert not close_to("x", value, 1.0, 1.0, "N", "").holds


def test_a_claim_holds_up_to_its_limit() -> None:
    assert at_most("x", 1.0, 1.0, "N", "").holds
    assert not at_most("x", 1.001, 1.0, "N", "").holds
    assert close_to("x", -1.01, -1.0, 1.0 + 1e-9, "N", "").holds
    assert not close_to("x", -1.02, -1.0, 1.0, "N", "").holds


def test_every_study_has_a_line_about_it() -> None:
    assert set(STUDIES) == set(ABOUT)


def test_every_study_is_run_by_a_test() -> None:
    """But those that learn, which take another package and longer."""
    tests = "".join(path.read_text("utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    left = {name for name in STUDIES if f'"{name}"' not in tests}
    assert left == {"snap-" + LEARNING, "suction-" + LEARNING}


@pytest.mark.parametrize(
    "path", sorted(Path(claims.__file__).parent.glob("*.py")), ids=lambda path: path.stem
)
def test_no_claim_is_built_so_that_it_cannot_fail(path: Path) -> None:
    calls = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]
    for call in calls:
        if getattr(call.func, "id", getattr(call.func, "attr", "")) == "Claim":
            verdict = call.args[4] if len(call.args) > 4 else call.keywords[-1].value
            assert not isinstance(verdict, ast.Constant), f"{path}:{call.lineno}"


def test_a_figure_is_a_line_of_its_own_and_counts_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, figure = Claim("one", 1.0, "N", "<= 1 N", True), Reported("two", np.nan, "%", "beside the first")
    monkeypatch.setitem(STUDIES, "one", lambda out, quick: [held, figure])
    console = Console(record=True, width=100, file=StringIO())
    assert run_study("one", tmp_path, console=console) == [held]
    written = json.loads((tmp_path / "claims.json").read_text())
    assert [claim["name"] for claim in written["claims"]] == ["one"]
    assert written["figures"] == [{"name": "two", "value": None, "unit": "%", "about": "beside the first"}]
    shown = next(line for line in console.export_text().splitlines() if "two" in line)
    assert "figure" in shown and "yes" not in shown and "NO" not in shown


def test_a_claim_that_does_not_hold_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = Claim("never", np.inf, "N", "<= 1 N", False)
    monkeypatch.setitem(STUDIES, "one", lambda out, quick: [failed])
    assert run_study("one", tmp_path / "new", console=QUIET) == [failed]
    written = json.loads((tmp_path / "new" / "claims.json").read_text())
    assert written["claims"] == [
        {"name": "never", "value": None, "unit": "N", "expected": "<= 1 N", "holds": False}
    ]


def test_a_study_without_its_data_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In all words of the reason, brackets too."""
    reason = "install 'palpo[robots]'"

    def lacking(out: Path, quick: bool) -> list[Claim]:
        raise Skipped(reason)

    monkeypatch.setitem(STUDIES, "one", lacking)
    said = Console(record=True, width=300, file=StringIO())
    assert run_study("one", tmp_path / "none", console=said) == [] and reason in said.export_text()
    monkeypatch.setenv(DATA, str(tmp_path))
    with pytest.raises(Skipped, match=DATA):
        data_folder()
    console = Console(record=True, width=300, file=(tmp_path / "log").open("w"))
    assert run_study("recorded-touch", tmp_path / "out", console=console) == []
    assert "skipped" in console.export_text()


def _triangle(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return tuple(RNG.normal(size=(3, 1, n, 3)))  # type: ignore[return-value]


def test_point_to_triangle_is_the_least_over_many_samples() -> None:
    a, b, c = _triangle(20)
    p = RNG.normal(size=(30, 1, 3))
    u, v = (w.ravel() for w in np.meshgrid(np.linspace(0, 1, 161), np.linspace(0, 1, 161)))
    u, v = u[u + v <= 1], v[u + v <= 1]
    points = a[0, :, None] + u[:, None] * (b - a)[0, :, None] + v[:, None] * (c - a)[0, :, None]
    sampled = np.linalg.norm(p[:, :, None] - points[None], axis=-1).min(axis=-1)
    exact = face_distance(p, a, b, c)
    # samples can only be farther, by at most the half diagonal of a cell of edges below 5 / 160
    assert (exact <= sampled + 1e-12).all()
    assert (sampled - exact).max() < 5.0 / 160


def test_segment_to_segment_is_the_least_over_many_samples() -> None:
    p, q = RNG.normal(size=(2, 12, 1, 3))
    u, v = RNG.normal(size=(2, 1, 12, 3))
    s = np.linspace(0, 1, 121)
    one = p + s[:, None] * (q - p)
    other = u[0][:, None] + s[:, None] * (v - u)[0][:, None]
    pairs = one[:, None, :, None] - other[None, :, None, :]
    sampled = np.linalg.norm(pairs, axis=-1).min(axis=(2, 3))
    exact = edge_distance(p, q, u, v)
    assert (exact <= sampled + 1e-12).all()
    assert (sampled - exact).max() < 5.0 / 120


def test_a_segment_through_a_face_crosses_it_and_one_beside_it_does_not() -> None:
    a, b, c = (np.array(x, float).reshape(1, 1, 3) for x in ([0, 0, 0], [1, 0, 0], [0, 1, 0]))
    p = np.array([[0.2, 0.2, -1.0], [0.9, 0.9, -1.0], [0.2, 0.2, 0.1]])[:, None]
    q = np.array([[0.2, 0.2, 1.0], [0.9, 0.9, 1.0], [0.2, 0.2, 1.0]])[:, None]
    assert crosses(p, q, a, b, c)[:, 0].tolist() == [True, False, False]


def test_the_axis_meets_a_slanted_face_at_its_height() -> None:
    # the plane y = 2 + x + 3 z over the origin
    vertices = np.array([[x, 2.0 + x + 3.0 * z, z] for x, z in ((-1.0, -1.0), (2.0, -1.0), (-1.0, 2.0))])
    assert height_above_axis(vertices, np.array([[0, 1, 2]], np.int32)) == pytest.approx(2.0, abs=1e-12)


def test_legs_start_and_end_where_they_say() -> None:
    path = legs((0.0, 1.0, 2.0, 3.0), (0.2, 1.5, 2.0, 3.0), (0.1, 1.5, 2.0, 3.0))
    assert path.shape == (301, 3)
    np.testing.assert_array_equal(path[[0, 200, 300]], [[1, 2, 3], [1.5, 2, 3], [1.5, 2, 3]])


def test_rest_begins_when_the_hand_has_stood_for_long_enough() -> None:
    path = legs((0.0, 0, 0, 0), (0.5, 0, 0, 0), (0.5, 1e-2, 0, 0), (1.0, 1e-2, 0, 0))
    rest, moving = rest_and_motion(path, 1e-3)
    # a minimum-jerk leg starts and ends too slowly to be seen as motion, for some milliseconds
    assert not rest[:1390].any() and rest[1405:].all()
    assert not moving[:500].any() and moving[515:1380].all()
    assert not (rest & moving).any()


def test_low_pass_keeps_a_slow_force_and_removes_a_fast_one() -> None:
    t = 1e-3 * np.arange(3000)
    wave = np.stack([np.sin(2 * np.pi * f * t) for f in (5.0, 400.0, 20.0)], axis=1)
    kept = below(wave, 100.0, 1e-3)[500:-500]
    # a fourth-order Butterworth run twice: (f / 100)^16 off below and (100 / f)^8 left above
    np.testing.assert_allclose(kept[:, [0, 2]], wave[500:-500][:, [0, 2]], atol=1e-5)
    assert np.abs(kept[:, 1]).max() < 1e-4


def test_compare_finds_what_was_put_in() -> None:
    path = legs((0.0, 0, 0, 0), (1.0, 0.05, 0, 0), (1.0, 0.05, 0, 0))
    exact = np.zeros((len(path), 3))
    exact[:, 1] = 2.0 * np.minimum(np.arange(len(path)) / 1000.0, 1.0)
    other = exact.copy()
    other[:, 1] += 0.02
    other[1960:, 1] += 0.1
    row = compare(exact, other, path, 20, 1e-3)
    assert row["peak_N"] == pytest.approx(2.0)
    assert row["moving_rms_percent"] == pytest.approx(1.0)
    assert row["rest_max_percent"] == pytest.approx(6.0)
    assert row["jump_at_refresh_N"] == pytest.approx(0.1)
    assert row["reference_change_there_N"] == pytest.approx(0.002)
    assert np.isnan(row["diverged_at_s"])


def test_compare_judges_by_the_rms_too_and_from_a_tick_on() -> None:
    path = legs((0.0, 0, 0, 0), (1.0, 0.05, 0, 0))
    exact = np.zeros((len(path), 3))
    exact[:, 0] = 1.0
    exact[600:, 0] = 0.5
    off = exact.copy()
    off[600:, 0] += 0.01
    off[:600, 0] += 0.2
    row = compare(exact, off, path, 20, 1e-3, since=600)
    assert row["moving_rms_percent"] == pytest.approx(1.0)
    assert row["moving_rms_percent_of_rms"] == pytest.approx(2.0)
    assert np.isnan(row["rest_rms_percent_of_rms"])


def test_a_force_averaged_over_ticks_keeps_its_impulse() -> None:
    force = RNG.normal(size=(9, 3))
    np.testing.assert_allclose(averaged(force, 4).sum(axis=0) * 4, force[:8].sum(axis=0), atol=1e-14)
    np.testing.assert_allclose(averaged(force, 1), force)


def test_a_finer_path_of_a_case_goes_through_the_places_of_the_coarser() -> None:
    for case in (LANDING_CASE, MultirateCase("wire", 1.0, 2.0, 700, (), ())):
        np.testing.assert_allclose(case.path(4)[::4][: len(case.path())], case.path(), atol=1e-12)


def test_compare_says_when_a_run_diverged() -> None:
    path = legs((0.0, 0, 0, 0), (1.0, 0.05, 0, 0))
    exact = np.ones((len(path), 3))
    wild = exact.copy()
    wild[700:] *= 1e3
    assert compare(exact, wild, path, 20, 1e-3)["diverged_at_s"] == pytest.approx(0.7)
    assert compare(exact, exact[:600], path, 20, 1e-3)["diverged_at_s"] == pytest.approx(0.6)


@pytest.mark.parametrize("kind", ["krylov", "paper"])
def test_what_the_tool_feels_the_beam_gets_at_rest(kind: str) -> None:
    """The ledger books the very forces; krylov over every period, the paper's scheme only at rest."""
    with SceneDrive("beams", kind=kind) as run:
        ledger = Ledger(run)
        path = scene_path(run.spec, 2.0)[:1100]
        run.go(path)
        before, begun = ledger.impulse.copy(), run.lock.low.tick
        trace = run.go(np.repeat(path[-1:], 200, axis=0))
    span = slice(begun, run.lock.low.tick)
    on_tool = run.dt * trace["force"][span].sum(axis=0)
    got = ledger.impulse - before
    if kind == "krylov":
        np.testing.assert_allclose(got, -on_tool, rtol=1e-9, atol=1e-12)
    else:
        # the slow rate's forces of 20 ms against the servo's at the same place, still settling by then
        np.testing.assert_allclose(got, -on_tool, rtol=0.02, atol=1e-3)


def test_two_beams_bend_alike_and_clamp_and_hand_feel_equal_forces(tmp_path: Path) -> None:
    lines = run_study("multirate-beams", tmp_path, quick=True, console=QUIET)
    claims = [line for line in lines if isinstance(line, Claim)]
    assert claims and all(claim.holds for claim in claims), [c for c in claims if not c.holds]
    with (tmp_path / "rest.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 4
    for name in ("shapes.png", "pluck.png"):
        assert (tmp_path / name).stat().st_size > 20_000
