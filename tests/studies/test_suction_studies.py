"""The studies of suction in their quick forms: the coarsest cup, few points."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from palpo.benchmarks.suction import MESHES, suction
from palpo.physics.gas.roughness import RoughSurface
from palpo.physics.mesh.cups import CUPS
from palpo.studies import suction_active, suction_mass, suction_measured
from palpo.studies.claims import Claim
from palpo.studies.registry import run_study
from palpo.studies.suction_runs import PUSH, changes, lead, press_and_lift, rigid_cube

QUIET = Console(quiet=True)


def _held(claims: list[Claim], *starts: str) -> bool:
    """Whether all claims whose names begin so hold; each beginning must be there."""
    named = [claim for claim in claims if claim.name.startswith(starts)]
    assert all(any(claim.name.startswith(start) for claim in named) for start in starts)
    return all(claim.holds for claim in named)


def _written(out: Path, claims: list[Claim], *pictures: str) -> bool:
    kept = json.loads((out / "claims.json").read_text())["claims"]
    drawn = all((out / f"{name}.png").stat().st_size > 15_000 for name in pictures)
    return drawn and [claim["name"] for claim in kept] == [claim.name for claim in claims]


def test_air_in_a_lifting_cup_obeys_the_gas_law_and_only_leaves(tmp_path: Path) -> None:
    claims = run_study("suction-gas", tmp_path, quick=True, console=QUIET)
    assert _written(tmp_path, claims, "gas", "error")
    assert _held(
        claims,
        "geometric pV against nRT",
        "air pressed out",
        "suction while the cube hangs",
        "cube at the end",
        "flow computed",
    )


def test_a_tunnel_is_a_part_of_the_cavity_over_both_its_holes_and_opens_it_over_one(tmp_path: Path) -> None:
    claims = run_study("suction-tunnel", tmp_path, quick=True, console=QUIET)
    assert _written(tmp_path, claims, "tunnel")
    assert all(claim.holds for claim in claims)


def test_light_cubes_hang_on_a_milled_surface_by_the_computed_seal(tmp_path: Path) -> None:
    claims = run_study("suction-seal", tmp_path, quick=True, console=QUIET)
    assert _written(tmp_path, claims, "lifts")
    assert _held(claims, "5.14, small cup, 50 g", "5.14, small cup, 100 g")


def test_the_limit_mass_lies_between_one_that_is_lifted_and_one_that_is_not() -> None:
    """A weight that grows by 3% a step against two that stay."""
    limit = suction_mass.limit_mass(suction_mass.Point("small", 76, PUSH, 0.6, 50.0))
    rose = [
        lead(changes("small", 76, press_and_lift(PUSH), rigid_cube(share * limit), hz=50.0)).partner[-1]
        for share in (0.7, 1.5)
    ]
    assert rose[0] > 0.01 > 1e-3 > rose[1]


def test_a_trace_keeps_every_step_of_the_path_and_the_weight_of_a_hanging_cube() -> None:
    trace = lead(changes("small", 76, press_and_lift(PUSH), rigid_cube(0.05), hz=50.0))
    assert len(trace.time) == 125
    np.testing.assert_allclose(trace.time, 0.02 * np.arange(1, 126), rtol=1e-12)
    # cup of 30 g and cube of 50 g; the swing after the lift has died down to a thousandth
    assert trace.hold[-1] == pytest.approx(0.08 * 9.81, rel=1e-2)


def test_a_pumped_cup_holds_more_under_stronger_suction() -> None:
    forces = [
        suction_active.detach_force(suction_active.pull(76, suction_active.ActivePull("A20", pressure, True)))
        for pressure in (-5e3, -20e3)
    ]
    assert 2.0 * forces[0] < forces[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("study", "pictures", "table"),
    [
        ("suction-mass", ("map", "mesh", "forces"), "limits"),
        ("suction-curvature", ("lifts",), "lifts"),
        ("suction-shapes", ("shapes",), "lifts"),
        ("suction-active", ("forces", "shapes"), "pulls"),
        ("suction-passive", ("forces", "trend"), "pulls"),
        ("suction-axisymmetric", ("hold",), "limits"),
        ("suction-measured", (), "measured"),
    ],
)
def test_the_study_writes_its_tables_pictures_and_claims(
    study: str, pictures: tuple[str, ...], table: str, tmp_path: Path
) -> None:
    claims = run_study(study, tmp_path, quick=True, console=QUIET)
    assert _written(tmp_path, claims, *pictures)
    with (tmp_path / f"{table}.csv").open() as file:
        assert list(csv.DictReader(file))


def test_the_bench_times_every_stage_and_fits_the_growth() -> None:
    figures = suction(most=4, scenes=("suction-plane",), meshes=(76, 125))
    plane = figures["scenes"]["suction-plane"]
    assert plane["steps"] == 4
    assert plane["nodes"] >= 552
    assert plane["mean ms"]["ours"] == pytest.approx(sum(plane["stage mean ms"].values()))
    assert plane["target median ms"]["at most"] == 10.0
    assert figures["cube by nodes of the cup"]["76"]["mean ms"]["other"] == MESHES[76]
    assert len(figures["growth with the nodes"]["exponents of the stages"]) == 6


def test_suction_reaches_out_under_a_rim_to_the_lip_that_makers_forces_count_from() -> None:
    """A pumped cup that is pulled off holds by what its lip encloses, though its opening shrinks."""
    shape, modulus = CUPS["small"].shape, suction_measured.young_of_shore(suction_measured.NITRILE)
    held = [
        suction_measured.pumped_force(
            shape, modulus, suction_measured.ON_STEEL, suction_measured.PUMPED, wall
        )
        for wall in (None, RoughSurface(1e-7, 5e-6), RoughSurface(2e-6, 1e-4))
    ]
    opening = suction_measured.PUMPED * np.pi * shape.inner**2
    lip = suction_measured.PUMPED * np.pi * (shape.inner + shape.rim) ** 2
    assert held[0] < opening < held[1] < lip
    # how rough the wall is decides how much leaks, not how far out the pressure falls
    assert held[2] == pytest.approx(held[1], rel=0.01)
