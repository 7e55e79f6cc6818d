"""HapCo's benches, and the studies of the thesis's and the paper's solvers in their quick forms."""

import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from palpo.physics.contact.problem import ContactProblem, Stop
from palpo.physics.contact.solvers.registry import find_solver
from palpo.studies import hapco_2008, hapco_2008_steps, hapco_solvers
from palpo.studies.claims import Claim
from palpo.studies.force_errors import deviation
from palpo.studies.hapco_benches import (
    BENCHES,
    LEGS_2008,
    PAIRS,
    P,
    lead,
    make_interaction,
    path_2008,
    penetration,
    side_nodes,
    sliding,
)
from palpo.studies.hapco_solvers import (
    OURS,
    Recorded,
    SolverStep,
    printed_trial,
    record,
    reference,
    solve,
    tight_trial,
)
from palpo.studies.hapco_thesis import MUS, SYMBOLS, TABLES
from palpo.studies.registry import run_study

QUIET = Console(quiet=True)


# ---- benches


@pytest.mark.parametrize(
    ("bench", "fixed", "mobile", "contacts"),
    [
        ("main", (726, 500), (324, 200), 36),
        ("main-16", (726, 500), (176, 90), 16),
        ("66", (726, 500), (726, 500), 66),
        ("delassus", (726, 500), (324, 200), 36),
        ("delassus-16", (726, 500), (176, 90), 16),
    ],
)
def test_the_blocks_have_the_thesis_numbers_of_nodes_elements_and_contacts(bench, fixed, mobile, contacts):
    blocks = BENCHES[bench]
    for block, wanted in ((blocks.fixed, fixed), (blocks.mobile, mobile)):
        mesh = block.mesh()
        assert (len(mesh.nodes), len(mesh.hexes)) == wanted
    assert blocks.n_contacts == contacts == side_nodes(blocks.mobile.mesh(), "bottom").size


def test_the_blocks_touch_without_force_and_a_step_down_is_the_gap_of_every_contact():
    interaction = make_interaction("main", *PAIRS["aluminium-tissue"], mu=0.3, stop=Stop(1e-12))
    touching = lead(interaction, np.zeros(3))
    assert touching.n_contacts == 36
    assert np.abs(touching.problem.b).max() < 1e-15
    assert np.abs(touching.forces).max() == 0.0
    down = lead(interaction, penetration(1)[0])
    # both surfaces are flat where nothing has deformed yet
    assert np.abs(down.problem.b.reshape(-1, 3)[:, 0] + P).max() < 1e-12


def test_the_paths_go_where_the_thesis_and_the_paper_say():
    np.testing.assert_allclose(penetration()[-1], [0.0, -0.015, 0.0], atol=1e-15)
    slide = sliding()
    np.testing.assert_allclose(slide[4], [0.0, -0.005, 0.0], atol=1e-15)
    np.testing.assert_allclose(slide[-1], [0.02, -0.005, 0.0], atol=1e-15)
    assert len(slide) == 25
    assert LEGS_2008 == (5, 20, 7, 4, 1) and len(path_2008()) == 37
    for path in (slide, path_2008()):
        np.testing.assert_allclose(np.linalg.norm(np.diff(path, axis=0), axis=1), P, rtol=1e-12)
    # the last leg is still pressed in
    assert (path_2008()[:, 1] < 0.0).all()


def test_stiffness_falls_towards_the_free_end_and_not_between_two_clamps():
    """A cantilever's compliance grows with the cube of its length, here 5 cm to 7 cm: 2.7 times."""
    rho = {}
    for clamp in ("left", "both"):
        one = make_interaction(f"2008-{clamp}", "green-2008", "red-2008", mu=0.3)
        w = [lead(one, displacement).problem.w.diagonal().max() for displacement in path_2008()[[4, 24]]]
        rho[clamp] = w[0] / w[1]
    # local compliance, the same at both places, takes part of it
    assert (5 / 7) ** 3 < rho["left"] < 0.6
    assert rho["both"] > 0.9


def test_the_tables_hold_every_solver_at_every_friction():
    assert len(TABLES) == 6
    for lines in TABLES.values():
        assert set(lines) == set(SYMBOLS) and all(len(line) == len(MUS) for line in lines.values())
    # (Div) as often as in tables 3.38 to 3.41
    assert [sum(c.diverges for line in t.values() for c in line) for t in TABLES.values()] == [
        0,
        0,
        4,
        5,
        9,
        9,
    ]


# ---- measures


def _problem(w: np.ndarray, b: np.ndarray, mu: float = 0.5) -> ContactProblem:
    return ContactProblem(w, b, np.full(len(b) // 3, mu))


@pytest.mark.parametrize("share", [0.95, 1.05])
def test_one_step_visits_converge_below_the_largest_factor_and_not_above(share):
    """One sticking contact of W = diag(1, 2, 4): rho lmax(W_aa) < 2, as successive over-relaxation."""
    problem = _problem(np.diag([1.0, 2.0, 4.0]) * 1e-3, np.array([-1e-3, 0.0, 1e-5]), 5.0)
    step = SolverStep(1, problem, find_solver("best").solve(problem, Stop(1e-12)))
    assert step.rho_min == pytest.approx(250.0)
    assert step.largest_factor == pytest.approx(2.0)
    result = find_solver("GB").solve(problem, Stop(1e-10, 2000), factor=share * step.largest_factor)
    assert result.converged == (share < 1.0)


def test_contacts_that_do_not_bear_do_not_bound_the_factor():
    w = np.diag([1.0, 1.0, 1.0, 8.0, 8.0, 8.0]) * 1e-3
    problem = _problem(w, np.array([-1e-3, 0.0, 0.0, 1e-3, 0.0, 0.0]))
    step = SolverStep(1, problem, find_solver("best").solve(problem, Stop(1e-12)))
    assert step.largest_factor == pytest.approx(16.0)


def test_deviation_is_the_share_of_the_reference_in_per_cent():
    assert deviation(np.array([3.0, 4.5, 0.0]), np.array([3.0, 4.0, 0.0])) == pytest.approx(10.0)


def test_every_other_step_keeps_the_last():
    one = Recorded("aluminium-tissue", "sliding", 0.3, steps=list(range(1, 21)))  # type: ignore[arg-type]
    assert one.every(6).steps == [2, 8, 14, 20]
    assert one.every(1).steps == one.steps


@pytest.fixture(scope="module")
def slid() -> Recorded:
    """Soft on soft, the last step of a slide."""
    one = record("tissue-tissue", "sliding", 0.3)
    assert [step.number for step in one.steps] == list(range(1, 21))
    return one.every(20)


def test_recorded_problems_start_from_no_force_and_have_their_solution(slid):
    (step,) = slid.steps
    assert step.problem.warm is None
    assert step.reference.residual <= 1e-12


@pytest.mark.portable
def test_a_reference_that_our_solver_leaves_unfinished_is_finished(slid):
    """Whether extrapolations circle a solution hangs on last bits; here they have no time to reach it."""
    (step,) = slid.steps
    begun = find_solver(OURS).solve(step.problem, Stop(1e-12, 40))
    assert begun.residual > 1e-8
    assert reference(step.problem, begun).residual <= 1e-12


@pytest.mark.parametrize("symbol", ["GB", "G*B'", "G*P'", "L", "best"])
def test_consistent_solvers_agree_on_a_bench(slid, symbol):
    (row,) = solve(slid, tight_trial(find_solver(symbol).name, 60.0, 20000))
    assert row["met"]
    # a residual of 1e-8 times the condition of W, some 1e3
    assert row["deviation_percent"] < 1e-2


@pytest.mark.parametrize("symbol", ["G*B", "L*", "G*P"])
def test_what_is_printed_is_another_answer(slid, symbol):
    (row,) = solve(slid, tight_trial(find_solver(symbol).name, 60.0))
    assert row["deviation_percent"] > 1.0


def test_printed_stop_is_met_before_the_answer_is_exact(slid):
    (row,) = solve(slid, printed_trial(SYMBOLS["GB"], 60.0))
    assert row["met"] and row["reason"] == "stalled"
    assert row["residual"] > 1e-8


# ---- the studies


def _failing(claims: list[Claim], *starts: str) -> list[Claim]:
    """Those of the named claims that do not hold; each name must be there."""
    named = [claim for claim in claims if claim.name.startswith(starts)]
    assert all(any(claim.name.startswith(start) for claim in named) for start in starts)
    return [claim for claim in named if not claim.holds]


@pytest.mark.slow
def test_solvers_of_the_thesis(tmp_path: Path) -> None:
    claims = run_study("hapco-solvers", tmp_path, quick=True, console=QUIET)
    assert not _failing(
        claims,
        "reference: largest common residual",
        "consistent solvers at 1e-8",
        "G*B' at 1e-8",
        "GB: steps",
        "anderson: steps",
        "G*B as printed",
        "L* as printed",
        "G*P as printed",
        "16 contacts, penetration: steps at which the pseudo-potential fails with the right sign",
        "36 contacts, sliding: steps at which the pseudo-potential fails with the right sign",
        "aluminium-tissue, penetration: mean rho_min",
        "tissue-tissue, penetration: mean rho_min",
    )
    page = (tmp_path / "verdict.md").read_text()
    written = json.loads((tmp_path / "claims.json").read_text())["claims"]
    for claim in written:
        assert f"**{claim['name']}** ({'yes' if claim['holds'] else 'no'})" in page
    for name in ("times", "deviations", "forces", "statuses", "formulations", "factors", "convergence"):
        assert (tmp_path / f"{name}.png").stat().st_size > 20_000
        assert f"({name}.png)" in page


@pytest.mark.slow
def test_solvers_of_the_paper(tmp_path: Path) -> None:
    claims = run_study("hapco-2008", tmp_path, quick=True, console=QUIET)
    converging = [f"{clamp}, {method}: s" for clamp in hapco_2008.CLAMPS for method in ("global", "local")]
    converging.remove("left end, global: s")  # the paper says that it does not
    assert not _failing(claims, *converging)
    assert (tmp_path / "verdict.md").is_file()
    assert len(list(tmp_path.glob("figure-*.png"))) == 4


def test_the_quick_plan_is_part_of_the_full_one() -> None:
    for study, full in ((hapco_solvers, hapco_solvers.FULL), (hapco_2008_steps, hapco_2008_steps.StepPlan())):
        assert set(study.QUICK.mus) <= set(full.mus)
