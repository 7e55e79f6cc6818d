"""Soft bodies that follow another law than Hooke's, in a scene at two rates."""

import numpy as np
import pytest

from palpo.config.words import Refusal
from palpo.physics.fem.integrated import Integrated
from palpo.physics.numerics.errors import InputError
from tests.verification.small_scenes import BALL_ON_BLOCK, lock_step, resting, small_scene, straight

ABOVE, DEEP = (0.003, 0.0088, -0.002), (0.003, 0.0028, -0.002)
TOLD = {
    "linear": {},
    "neo-hookean": {},
    "mooney-rivlin": {"c10": 400.0, "c01": 150.0},
    "ogden": {"terms": [{"modulus": 150.0, "exponent": 6.0}, {"modulus": -200.0, "exponent": -3.0}]},
    "fung": {"exponent": 3.0},
}


def told(law: str) -> str:
    """The material of a body whose law has about the modulus of the scene's own, and a ratio of 0.45."""
    keys = {"name": "soft-tissue", "poisson_ratio": 0.45, "law": law} | TOLD[law]
    if law not in ("mooney-rivlin", "ogden"):
        keys["youngs_modulus"] = 3.19e3
    return f"bodies.block.material={toml(keys)}"


def toml(value) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}={toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(toml, value)) + "]"
    return repr(value)


def felt(kind: str, *overrides: str) -> np.ndarray:
    """Force in the hand (n, 3) [N] while a ball is pressed deep into a block and rests."""
    run = lock_step(BALL_ON_BLOCK, *overrides, kind=kind)
    trace = run.run(np.vstack([straight(ABOVE, DEEP, 300), resting(DEEP, 100)]))
    run.close()
    assert len(trace["force"]) == 400, run.broken
    return trace["force"]


@pytest.mark.parametrize("elements", ["tet4", "tet4-patch", "tet10"])
@pytest.mark.parametrize("law", [law for law in TOLD if law != "linear"])
def test_both_rates_feel_as_one(law, elements):
    """As of linear bodies: to 2% of the peak in motion and 0.2% at rest, the scheme's own error."""
    over = told(law), f'bodies.block.elements="{elements}"'
    assert isinstance(small_scene(BALL_ON_BLOCK, *over).members[0].body._elements, Integrated)
    both, one = felt("krylov", *over), felt("monolithic", *over)
    peak = np.abs(one).max()
    assert peak > 0.05
    assert np.abs(both - one).max() < 0.02 * peak
    assert np.abs(both[-1] - one[-1]).max() < 2e-3 * peak


def test_a_law_that_stiffens_is_felt_as_stiffer_the_deeper_it_is_pressed():
    """All are as stiff as each other at rest. In compression (stretch 1 / 2, by the closed forms of
    test_laws.py) they resist in this order, and so does the block below the ball."""
    force = {law: felt("krylov", told(law))[:, 1] for law in TOLD}
    final = {law: one[-1] for law, one in force.items()}
    assert final["linear"] < final["neo-hookean"] < final["mooney-rivlin"] < final["fung"]


@pytest.mark.parametrize("law", [law for law in TOLD if law != "linear"])
def test_multigrid_solves_them_all(law):
    """The force is that of factors, to what is left of each solve, which is more the deeper they are."""
    over, ways = (told(law), 'bodies.block.elements="tet4"'), ("direct", "multigrid")
    factors, without = (felt("krylov", *over, f'bodies.block.solver="{way}"') for way in ways)
    assert np.abs(without - factors).max() < 1e-2 * np.abs(factors).max()


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("law='fung'", r'material.exponent: the key is missing, which law = "fung" needs'),
        ("law='funk'", r'material.law = "funk": did you mean "fung"\?'),
        ("law='mooney-rivlin',c10='1 kPa'", r"material.c01: the key is missing"),
        ("law='mooney-rivlin',c10=0,c01=0", r"material.c10 = 0: one of c10 and c01 must be above 0"),
        (
            "law='mooney-rivlin',c10=1,c01=1,youngs_modulus=9",
            r"youngs_modulus = 9: it follows from c10 and c01",
        ),
        ("c10='1 kPa'", r'material.c10 = "1 kPa": it belongs to law = "mooney-rivlin", and this is "linear"'),
        ("law='ogden',terms=[]", r"material.terms = \[\]: the key is missing|terms: the key is missing"),
        ("law='ogden',terms=[{modulus=1,exponent=-2}]", "modulus times exponent must be positive"),
        ("law='ogden',terms=[{modulus=1,exponent=60}]", "exponent = 60 is too large; it must be at most 50"),
    ],
)
def test_constants_that_are_not_a_laws_are_refused_by_their_keys(table, said):
    with pytest.raises(Refusal, match=said):
        small_scene(BALL_ON_BLOCK, f"bodies.block.material={{name='liver',{table}}}")


def test_what_cannot_follow_a_law_says_so():
    over = told("fung"), 'bodies.block.elements="hex8"'
    with pytest.raises(Refusal, match='hexahedra follow law = "linear" alone; use "tet4-patch" or "tet10"'):
        small_scene(BALL_ON_BLOCK, *over)
    little = "poisson_ratio=0.2,law='ogden',terms=[{modulus=-1,exponent=-40}]"
    small = f"bodies.block.material={{name='liver',{little}}}"
    with pytest.raises(InputError, match=r"bodies.block.material.poisson_ratio is too small for its law"):
        small_scene(BALL_ON_BLOCK, small)
