"""The studies of what a snap connector must show, in their quick form, and what they measure with."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from palpo.app.cli.progress import Silent
from palpo.config.load import load_scene
from palpo.physics.systems.snap.model import SnapModel
from palpo.studies import snap_accuracy
from palpo.studies.claims import Claim
from palpo.studies.registry import run_study
from palpo.studies.snap_accuracy import floor_balance
from palpo.studies.snap_clusters import noise
from palpo.studies.snap_frequency import STAGES, models_at, timed
from palpo.studies.snap_haptic import SnapTrial
from palpo.studies.snap_models import (
    MODELS,
    ModelCase,
    build,
    case_of,
    exact_distance,
    insert,
    path_of,
    shipped,
)


@pytest.fixture(scope="module")
def case() -> ModelCase:
    return case_of("two-prong")


def quick(name: str, out: Path) -> dict[str, Claim]:
    claims = run_study(name, out, quick=True, console=Console(quiet=True))
    verdict = {claim.name: claim for claim in claims}
    assert len(json.loads((out / "claims.json").read_text())["claims"]) == len(verdict) == len(claims)
    assert next(out.glob("*.png")).stat().st_size > 20000
    return verdict


def test_a_snap_without_damping_keeps_its_energy_at_every_coupling_stiffness(tmp_path: Path):
    verdict = quick("snap-energy", tmp_path)
    assert len(verdict) == 7
    assert all(claim.holds for claim in verdict.values())


def test_undamped_prongs_come_to_rest_in_bounds_where_a_corotational_one_diverges(tmp_path: Path):
    verdict = quick("snap-stability", tmp_path)
    assert len(verdict) == 4
    assert all(claim.holds for claim in verdict.values())


def test_a_wedge_spreads_prongs_with_the_force_of_beams_that_its_axial_load_bends_back(tmp_path: Path):
    verdict = quick("snap-wedge", tmp_path)
    assert len(verdict) == 4
    assert all(claim.holds for claim in verdict.values())


def test_the_frequencies_are_told_for_every_model(tmp_path: Path):
    verdict = quick("snap-frequency", tmp_path)
    # whether they are reached is the machine's affair
    assert all(np.isfinite(claim.value) and claim.value >= 0.0 for claim in verdict.values())
    lines = (tmp_path / "frequency.csv").read_text().splitlines()
    assert len(lines) == 1 + len(models_at("coarse"))


def test_a_timed_insertion_is_the_insertion_to_the_bit(case: ModelCase):
    path = path_of(case.connector, 1e-3, rest=0.0)
    field = exact_distance(case.connector)
    watched, plain = (build(case, MODELS[3], field) for _ in range(2))
    timed(watched, path, np.zeros((len(path), len(STAGES)), np.int64), np.zeros((len(path), 3)))
    insert(plain, rest=0.0)
    np.testing.assert_array_equal(watched.coordinates, plain.coordinates)
    np.testing.assert_array_equal(watched.state.plug.motion.velocity, plain.state.plug.motion.velocity)


def test_the_whole_model_at_the_usual_step_feels_as_at_half_of_it(tmp_path: Path):
    verdict = quick("snap-accuracy", tmp_path)
    for what in ("RMS error before release", "error of the peak", "release off by", "floor's force"):
        assert next(c for n, c in verdict.items() if "model 1" in n and what in n).holds
    assert verdict["E identified from displacements with 10% noise"].holds


def test_the_floor_bears_contact_and_inertia_exactly_where_segments_are_unreduced(case: ModelCase):
    row = floor_balance(case, MODELS[2])
    # through 300 steps of a body whose inverse is good to 1e-13
    assert row["error_over_contact"] < 1e-9


def test_clusters_save_sweeps_and_quieten_the_force(tmp_path: Path):
    verdict = quick("snap-clusters", tmp_path)
    for what in ("sweeps", "noise"):
        assert next(c for n, c in verdict.items() if what in n).holds


def test_the_click_reaches_the_hand_and_the_coupling_stays_passive(tmp_path: Path):
    verdict = quick("snap-haptic", tmp_path)
    # a coarse mesh is rough: how its peak meets a soft hand and a stiff one differs by more than a fine one's
    kept = [claim for name, claim in verdict.items() if "the same, beside" not in name]
    assert len(kept) == 4
    assert all(claim.holds for claim in kept)


def test_balanced_bases_beat_modal_ones_and_do_not_hang_on_a_small_damping(tmp_path: Path):
    verdict = quick("snap-reduction", tmp_path)
    for what in ("balanced over the better other", "beta = 1e-06", "click's peak"):
        assert next(c for n, c in verdict.items() if what in n).holds


def test_noise_is_that_of_white_noise_on_a_parabola():
    t = np.linspace(0.0, 1.0, 20001)
    white = np.random.default_rng(0).normal(size=t.size)
    # an estimate from 20000 samples, neighbours correlated
    assert noise(5.0 * t**2 + 3.0 * white, 100.0) == pytest.approx(3.0, rel=0.05)
    assert noise(5.0 * t**2, 1.0) < 1e-6


def test_the_model_off_line_takes_a_scenes_substeps_as_the_servo_does():
    """Its target goes evenly within a tick, and the hand feels the tick's mean: to roundings of the scale."""
    row = SnapTrial(load_scene("snap-buckle", []), Silent()).row("snap-buckle")
    assert row["peak_N"] == pytest.approx(row["along_peak_N"], rel=1e-9)
    assert row["drop_N"] == pytest.approx(row["along_drop_N"], rel=1e-9)


def test_what_follows_a_click_is_the_references():
    """Drop and 40 ms after the release within 10%, as what a step cannot follow is damped."""
    kind = "two-prong"
    case = shipped(kind)
    curve = snap_accuracy._reference(case)
    rows = {
        settling: snap_accuracy._row(
            kind,
            "",
            snap_accuracy._felt(
                SnapModel(case.connector, replace(case.numerics, settling=settling)), "exact"
            ),
            curve,
        )
        for settling in (0.0, 1.0)
    }
    assert abs(rows[1.0]["drop_error_percent"]) < snap_accuracy.CLICKED
    assert rows[1.0]["rms_after_percent"] < snap_accuracy.CLICKED < rows[0.0]["rms_after_percent"]
