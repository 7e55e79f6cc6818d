"""`palpo identify FILE`: constants of laws from a measured force over depth."""

import numpy as np
import pytest

from palpo.app.cli.identify_material import PARAMETERS, Specimen, as_table, fitted, measured_force
from palpo.app.cli.main import main
from palpo.config.load import parse_scene
from palpo.config.words import Refusal
from palpo.physics.bodies.soft import SoftBody
from palpo.physics.fem.material import Material
from palpo.physics.fem.uniaxial import nominal_stress
from palpo.physics.mesh.generate import block
from tests.verification.small_scenes import BALL_ON_BLOCK

SHAPES = {"linear": (), "neo-hookean": (), "mooney-rivlin": (0.3,), "ogden": (1.0, 5.0), "fung": (0.8,)}
CYLINDER, STRIP, BALL = (
    Specimen("cylinder", (0.05, 0.03)),
    Specimen("strip", (6e-3, 3e-3, 0.033)),
    Specimen("ball", (0.01,)),
)


@pytest.mark.parametrize("law", SHAPES)
@pytest.mark.parametrize("specimen", [CYLINDER, STRIP], ids=lambda one: one.kind)
def test_constants_come_back_from_their_own_force(law, specimen):
    """From 40 measurements with noise of 0.5% of the largest: within 4 standard errors, which are small."""
    depths = np.linspace(0.02, 0.5, 40) * specimen.sizes[-1]
    true = Material(5e4, 0.48, 1000.0, law=law, shape=SHAPES[law])
    force = specimen.force(true, depths)
    noise = 5e-3 * np.abs(force).max() * np.random.default_rng(2).normal(size=force.size)
    found = fitted(specimen, law, 0.48, depths, force + noise)
    exact = np.array([5e4, *(SHAPES[law][-1:])])
    assert (np.abs(found.values - exact) < 4.0 * found.errors).all()
    assert found.errors[0] < 0.1 * 5e4 and found.residual == pytest.approx(5e-3, rel=0.3)


def test_fungs_exponent_is_found_of_a_rubber_that_is_pulled_far():
    """Silicone at five times its length has one of 0.02; from 0.5 the search ends beside its minimum."""
    depths = np.array([0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0]) * STRIP.sizes[-1]
    true = Material(5e4, 0.48, 1000.0, law="fung", shape=(0.03,))
    found = fitted(STRIP, "fung", 0.48, depths, STRIP.force(true, depths))
    assert found.values == pytest.approx([5e4, 0.03], rel=1e-4)


@pytest.mark.parametrize("law", SHAPES)
def test_a_bar_of_elements_is_in_balance_at_the_stress_of_the_closed_form(law):
    """A body of the law, brought to the stretch by its steps, pulls at its ends with that stress."""
    material = Material(5e4, 0.4, 1000.0, 200.0, law=law, shape=SHAPES[law])
    mesh, stretch = block((0.02, 0.03, 0.02), (1, 2, 1)), 0.7
    up = mesh.nodes[:, 1]
    ends = np.abs(up) > 0.0149
    body = SoftBody("bar", mesh, material, np.zeros(0, int), (0.0, 0.0, 0.0))
    body.x[:, 1] = stretch * up
    # ends slide on their plates: they move across alone
    across = np.ones_like(mesh.nodes, bool)
    across[ends, 1] = False
    for _ in range(60):
        body.linearise()
        k, f = body.tangent().toarray(), body.undamped_force()
        free = np.flatnonzero(across.ravel())
        step = np.linalg.lstsq(k[np.ix_(free, free)], f[free], rcond=1e-9)[0]
        body.x.reshape(-1)[free] += step
    force = body.undamped_force().reshape(-1, 3)[ends & (up > 0.0), 1].sum()
    assert -force / 4e-4 == pytest.approx(nominal_stress(material, np.array([stretch]))[0], rel=1e-8)


def test_a_ball_is_hertzs():
    """F = 4/3 E / (1 - nu^2) R^(1/2) d^(3/2)."""
    force = BALL.force(Material(2e4, 0.45, 1.0), np.array([1e-3]))
    assert force[0] == pytest.approx(4.0 / 3.0 * 2e4 / (1.0 - 0.45**2) * 0.1 * 1e-3**1.5, rel=1e-12)


def test_a_published_cylinder_of_silicone_is_found_as_its_authors_did(tmp_path, capsys):
    """Ecoflex 00-30, Dawood and others 2026: mu 14.20 kPa, alpha 3.970 by Ogden's law, from whole curves of
    ten runs; seven points of their mean give it to 5%."""
    file = tmp_path / "ecoflex.csv"
    file.write_text("# 50 mm across, 30 mm high\ndepth_mm,force_N\n1.5,9.83\n3,21.35\n6,47.16\n9,79.01\n"
                    "12,125.06\n15,212.32\n18,421.62\n")  # fmt: skip
    picture = tmp_path / "fits.png"
    assert main(["identify", str(file), "--cylinder", "50 mm", "30 mm", "--law", "ogden", "--law", "linear",
                 "--out", str(picture)]) == 0  # fmt: skip
    said = capsys.readouterr().out
    assert "E is about 1.35 times too large" in said and picture.stat().st_size > 1000
    told = next(line for line in said.splitlines() if line.startswith("material = "))
    material = (
        parse_scene(BALL_ON_BLOCK, "x.toml", [f"bodies.block.{told.replace(' = ', '=', 1)}"])
        .bodies[0]
        .material
    )
    assert material.terms[0].modulus == pytest.approx(14.20e3, rel=0.05)
    assert material.terms[0].exponent == pytest.approx(3.970, rel=0.05)


@pytest.mark.parametrize("law", SHAPES)
def test_what_is_printed_is_the_material_that_was_found(law):
    made = Material(5e4, 0.45, 1000.0, law=law, shape=SHAPES[law])
    spec = (
        parse_scene(BALL_ON_BLOCK, "x.toml", [f"bodies.block.material={as_table(made)}"]).bodies[0].material
    )
    assert spec.youngs_modulus == pytest.approx(5e4, rel=1e-5) and spec.law == law
    assert spec.shape == pytest.approx(SHAPES[law], rel=1e-5)
    assert law in PARAMETERS


GOOD = "depth_mm,force_N\n" + "".join(f"{i},{0.1 * i}\n" for i in range(1, 9))


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("a,b\n1,2\n", (), "its first line names no column depth_m or depth_mm"),
        ("", (), "its first line names no column"),
        (GOOD.replace("3,", "three,"), (), "measurement 3 is 'three,"),
        (GOOD.replace("3,", "nan,"), (), "which is not finite"),
        (GOOD[:40], (), "give 5 to 100000"),
        (GOOD.replace(",0", ",-0"), (), "most forces are not positive"),
        (GOOD, ("--law", "funk"), "--law funk: there is no such law; choose"),
        (GOOD, ("--poisson-ratio", "0.5"), "--poisson-ratio 0.5: give one from 0 to below 0.5"),
        (GOOD, ("--ball", "1 m"), "one of --ball R, --cylinder D H and --strip W T L"),
        (GOOD.replace("mm", "m"), (), "0 measurements are at depths above 0"),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_sentence(text, options, said, tmp_path, capsys):
    file = tmp_path / "force.csv"
    file.write_text(text)
    out = "--out", str(tmp_path / "x.png")
    assert main(["identify", str(file), "--cylinder", "50 mm", "30 mm", *options, *out]) == 2
    assert said in capsys.readouterr().err


def test_options_that_say_no_specimen_are_refused(tmp_path, capsys):
    file = tmp_path / "force.csv"
    file.write_text(GOOD)
    out = "--out", str(tmp_path / "x.png")
    for options, said in (
        ((), "say what was measured"),
        (("--ball", "0 mm"), "--ball 0 mm: give a positive length"),
        (("--ball", "1 N"), "is a force where a length is needed"),
        (("--ball", "1 m", "--law", "fung"), "a ball tells a modulus alone"),
    ):
        assert main(["identify", str(file), *options, *out]) == 2
        assert said in capsys.readouterr().err
    assert main(["identify", "snap"]) == 2
    assert "--measured: a connector needs" in capsys.readouterr().err
    with pytest.raises(Refusal, match="No such file"):
        measured_force(tmp_path / "none.csv")
