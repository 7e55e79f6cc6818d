"""A cup's law of few numbers: what it is taken from, and the margins of loads."""

import json
import math

import numpy as np
import pytest

import palpo
from palpo.app.report.lift_page import as_data, write_lift
from palpo.physics.mesh.cups import CUPS, GRIDS, cup
from palpo.physics.mesh.io import write_solid_mesh
from palpo.physics.numerics.errors import InputError
from palpo.physics.suction.reduced_cup import GRAVITY, HeldLoad, margin, margins, reduce_cup


@pytest.fixture(scope="module")
def law():
    return reduce_cup("small", 1e-3, 0.6, (1e-6, 2e-5))


def test_a_cup_s_force_grows_with_the_pull_and_a_line_tells_it(law):
    assert (np.diff(law.pull) > 0.0).all() and (np.diff(law.force) > 0.0).all()
    assert (law.pressed > 0.0).all()
    # neo-Hookean and gas both soften over a pull of a third of the cup's height, by a few percent
    assert law.misfit < 0.05
    # the rim is pressed somewhere on its width
    assert 15e-3 < law.radius < 20e-3
    assert all((law.leak_time[2e-5] < times).all() for times in (law.leak_time[1e-6],))


def test_each_margin_is_what_is_there_over_what_is_asked(law):
    mass = 0.5 * law.limit / GRAVITY
    plain = margins(law, HeldLoad(mass))
    assert plain["pull"] == pytest.approx(2.0)
    assert plain["slip"] == plain["peel"] == plain["lie"] == 1e9
    pressed = float(np.interp(0.5 * law.limit, law.force, law.pressed))
    once, twice = (margins(law, HeldLoad(mass, offset=offset))["peel"] for offset in (1e-3, 2e-3))
    assert once == pytest.approx(2.0 * twice)
    assert once == pytest.approx(0.5 * pressed * law.radius / (0.5 * law.limit * 1e-3))
    tilted = HeldLoad(mass, tilt=0.3, below=0.02)
    axial = float(np.interp(mass * GRAVITY * math.cos(0.3), law.force, law.pressed))
    assert margins(law, tilted)["slip"] == pytest.approx(law.mu * axial / (mass * GRAVITY * math.sin(0.3)))
    # a cylinder's drop is r^2 / D: half the diameter, half the margin
    wide, narrow = (margins(law, HeldLoad(mass, diameter=d))["lie"] for d in (0.8, 0.4))
    assert wide == pytest.approx(2.0 * narrow)
    assert margin(law, HeldLoad(2.0 * mass * 1.01))[1] in ("pull", "leak")


def test_an_unknown_cup_and_a_push_of_nothing_are_refused():
    with pytest.raises(InputError, match="cup 'big' is unknown; there are small"):
        reduce_cup("big", 1e-3, 0.6, ())
    with pytest.raises(InputError, match=r"push = 0\.0"):
        reduce_cup("small", 0.0, 0.6, ())
    with pytest.raises(InputError, match="no solid of revolution"):
        reduce_cup("asymmetric", 1e-3, 0.6, ())


def test_the_page_has_the_map_and_the_law(law, tmp_path):
    page = write_lift(tmp_path, law, HeldLoad(0.05, rms=1e-6))
    text = page.read_text("utf-8")
    assert "data:image/png;base64," in text and "decides" in text
    data = json.loads((tmp_path / "cup.json").read_text("utf-8"))
    assert data == json.loads(json.dumps(as_data(law)))
    assert data["force_N"][-1] == data["limit_N"] and len(data["pull_m"]) == len(data["peel_Nm"])
    rows = (tmp_path / "map.csv").read_text("utf-8").splitlines()
    assert rows[0].endswith("least_margin,decides") and len(rows) == 1 + 25 * (25 + 25 + 25 + 2)


def test_a_scene_s_own_body_has_the_law_of_the_solid_of_revolution(law):
    """The same cup as hexahedra in three dimensions, by other elements, contacts and cavities: its stiffness
    within 5%, as its mesh is (docs/suction.md). Its suction ends at the cavity's border, where the rim begins
    to touch, so that it is held longer; 20% cover it."""
    found = palpo.lift("suction-plane", rms=1e-6)
    own = found.judged
    assert own.stiffness == pytest.approx(law.stiffness, rel=0.05)
    assert own.rim_stiffness == pytest.approx(law.rim_stiffness, rel=0.05)
    assert own.limit == pytest.approx(law.limit, rel=0.2)
    assert own.radius == pytest.approx(law.radius, rel=0.05)
    assert own.rest == pytest.approx(law.rest, abs=1e-4)
    assert own.damping == 1e-3 and not own.pumped


def test_a_pumped_cup_holds_what_its_scene_pulls_it_off_with():
    """suction-steel: its own body, kept at -60 kPa; docs/suction.md has 38.1 N of the scene itself."""
    found = palpo.lift("suction-steel")
    assert found.margins["leak"] > 1e6  # the pump goes on
    assert found.judged.pumped and found.judged.limit == pytest.approx(38.1, rel=0.02)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (("probe", {}), "a suction scene has cups"),
        (("suction-plane", {"which": "cap"}), 'no such cup; did you mean "cup"|no such cup; choose'),
        (("small", {"which": "left"}), "leave it out"),
        (("suction-arm", {}), "an arm is no cup"),
        (("smal", {}), "cup 'smal' is unknown; there are small"),
    ],
)
def test_what_cannot_be_lifted_with_is_refused(told, words):
    with pytest.raises(palpo.Refusal, match=words):
        palpo.lift(told[0], **told[1])


def test_a_cup_from_a_file_has_the_law_of_the_same_mesh(tmp_path):
    """Tetrahedra of the small cup from a file, turned and elsewhere in its scene, which lifts nothing."""
    mesh = cup(CUPS["small"].shape, GRIDS[203]).mesh
    write_solid_mesh(tmp_path / "cup.vtu", mesh)
    top = mesh.nodes[:, 1].max()
    material = {"name": "silicone", "youngs_modulus": 338e3, "poisson_ratio": 0.42}
    drive = {"kind": "scripted", "path": [[0, 0, 0, 0]]}
    plate = {"name": "plate", "kind": "mesh", "geometry": {"kind": "plate"}}
    held = [{"box": [[-1.0, -1.0, 0.5 + top - 1e-3], [1.0, 1.0, 1.0]]}]
    # standing on its opening along z, half a metre away
    placed = {"position": [0.0, 0.3, 0.5], "rotation": [1.0, 0.0, 0.0, math.pi / 2]}
    own = {
        "name": "cup", "kind": "cup", "material": material, "drive": drive, "placement": placed,
        "geometry": {"kind": "file", "path": str(tmp_path / "cup.vtu"), "held": held},
    }  # fmt: skip
    model = {"kind": "cup", "model": "small", "resolution": 203}
    known = {"name": "cup", "kind": "cup", "geometry": model, "elements": "tetrahedra", "drive": drive}
    ours, same = (
        palpo.lift(palpo.load({"title": "a cup", "bodies": [body, plate]}), rms=1e-6) for body in (own, known)
    )
    assert ours.judged.limit == pytest.approx(same.judged.limit, rel=0.02)
    assert ours.judged.stiffness == pytest.approx(same.judged.stiffness, rel=0.02)
    # its axis is the scene's z, which is y turned down in axes whose z is up
    np.testing.assert_allclose(ours.cups[0].axes[:, 2], [0.0, -1.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(same.cups[0].axes, np.eye(3), atol=1e-12)
