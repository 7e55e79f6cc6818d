"""Quick forms of the long studies: they run through, and what they must show holds already there."""

import csv
from pathlib import Path

import pytest
from rich.console import Console

from palpo.studies.claims import Skipped
from palpo.studies.multirate_cases import FEWER, LATENESS
from palpo.studies.recording import data_folder
from palpo.studies.registry import run_study

QUIET = Console(quiet=True)


def _have_data() -> bool:
    try:
        data_folder()
    except Skipped:
        return False
    return True


@pytest.mark.slow
def test_krylov_is_the_whole_scene_at_1_khz(tmp_path: Path) -> None:
    claims = run_study("multirate-accuracy", tmp_path, quick=True, console=QUIET)
    assert claims and all(claim.holds for claim in claims), [c for c in claims if not c.holds]
    with (tmp_path / "accuracy.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["kind"] == "krylov"]
    # a landing is among them; each is punctual and late, and beside each stands what its reference is worth
    assert {row["low_hz"] for row in rows if row["landing"] == "True"} == {"50", "200"}
    every = [row for row in rows if row["fewer_columns"] == "False"]
    assert [row["late"] for row in every] == [*LATENESS] * (len(every) // len(LATENESS))
    assert {int(row["columns"]) for row in rows if row["fewer_columns"] == "True"} == set(FEWER)
    assert all(float(row["reference_1kHz_off_percent"]) > 0.0 for row in rows)


@pytest.mark.slow
def test_a_pressed_ball_is_felt_as_another_program_has_it(tmp_path: Path) -> None:
    claims = run_study("indentation", tmp_path, quick=True, console=QUIET)
    assert claims and all(claim.holds for claim in claims), [c for c in claims if not c.holds]


@pytest.mark.slow
def test_no_contact_problem_is_left_unsolved(tmp_path: Path) -> None:
    """Times are the full study's, of a machine by itself."""
    claims = run_study("contact-bank", tmp_path, quick=True, console=QUIET)
    unsolved = next(claim for claim in claims if "unsolved" in claim.name)
    assert unsolved.holds, unsolved


@pytest.mark.slow
def test_a_large_body_is_the_whole_scene_at_1_khz(tmp_path: Path) -> None:
    claims = run_study("large-accuracy", tmp_path, quick=True, console=QUIET)
    assert claims and all(claim.holds for claim in claims), [c for c in claims if not c.holds]


@pytest.mark.slow
def test_a_quick_hand_feels_the_whole_scene_at_1_khz(tmp_path: Path) -> None:
    claims = run_study("speed-accuracy", tmp_path, quick=True, console=QUIET)
    assert claims and all(claim.holds for claim in claims), [c for c in claims if not c.holds]
    with (tmp_path / "speed.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert all(float(row["speed_m_s"]) > 0.95 * float(row["asked_speed_m_s"]) for row in rows)
    assert {row["motion"] for row in rows} >= {"tap", "stroke", "shake", "let-go"}


@pytest.mark.slow
def test_no_path_of_the_hand_breaks_a_body(tmp_path: Path) -> None:
    claims = run_study("random-hands", tmp_path, quick=True, console=QUIET)
    assert claims and all(claim.holds for claim in claims), [c for c in claims if not c.holds]


@pytest.mark.slow
def test_no_needle_leaves_anything_behind(tmp_path: Path) -> None:
    claims = run_study("random-insertions", tmp_path, quick=True, console=QUIET)
    assert claims and all(claim.holds for claim in claims), [c for c in claims if not c.holds]


@pytest.mark.slow
def test_no_blade_leaves_anything_behind(tmp_path: Path) -> None:
    claims = run_study("random-cuts", tmp_path, quick=True, console=QUIET)
    assert claims and all(claim.holds for claim in claims), [c for c in claims if not c.holds]


@pytest.mark.slow
def test_bodies_of_several_rates_and_hands_are_the_whole_scene_at_1_khz(tmp_path: Path) -> None:
    claims = run_study("mixed-accuracy", tmp_path, quick=True, console=QUIET)
    assert claims and all(claim.holds for claim in claims), [c for c in claims if not c.holds]


@pytest.mark.slow
def test_a_hung_cylinder_weighs_what_it_weighs(tmp_path: Path) -> None:
    """Short waits leave a swing, so that of the weights only the mean is judged here."""
    claims = {c.name: c for c in run_study("multirate-wire", tmp_path, quick=True, console=QUIET)}
    for name in ("rest", "slide", "lift", "hang", "drop"):
        deepest = next(c for key, c in claims.items() if key.startswith(f"deepest penetration, {name}"))
        assert deepest.holds, deepest
    assert claims["largest force on the hand in all phases"].holds


@pytest.mark.slow
@pytest.mark.skipif(not _have_data(), reason="the recordings are not there")
def test_a_recorded_hand_feels_finite_bounded_continuous_forces(tmp_path: Path) -> None:
    claims = run_study("recorded-touch", tmp_path, quick=True, console=QUIET)
    assert claims and all(claim.holds for claim in claims), [c for c in claims if not c.holds]
