"""Modulus, friction and base compliance from a measured insertion (002, section V-C)."""

from dataclasses import replace

import numpy as np
import pytest

from palpo.app.cli.identify import measured_curve
from palpo.config.words import Refusal
from palpo.physics.numerics.errors import InputError
from palpo.physics.systems.snap.connectors.hooked_beam import drag_over_lift
from palpo.physics.systems.snap.identification import SIGMAS, beside, insertion_constants
from palpo.physics.systems.snap.travel import push_in
from palpo.studies.snap_models import case_of, exact_distance

STIFFNESS, LIFT, RAMP = 1.2e4, 3e-3, 0.7
TRUE = np.array([1.3, 0.21, 4e-6, 1e-4])
"""Modulus over the model's, friction, compliance of the base [m/N], where the travel counts from [m]."""
CLICK, SHOULDER, END = 1e-3 + LIFT / np.tan(RAMP), 7.5e-3, 10e-3
SAMPLES = 600


def wedge(mu: float) -> tuple[np.ndarray, np.ndarray]:
    """A hook on a wedge, then on the shoulder behind it, then on the slope down, that lets it close.

    Wedge: F = k u (tan a + mu) / (1 - mu tan a). Shoulder: k u mu, which it meets with half of its lift.
    Slope: -k u (tan a - mu) / (1 + mu tan a).
    """
    x = np.linspace(0.0, END, 2001)
    up = np.clip((x - 1e-3) * np.tan(RAMP), 0.0, LIFT)
    down = np.clip(0.5 * LIFT - 0.4 * (x - SHOULDER), 0.0, None)
    pushing = -(np.tan(RAMP) - mu) / (1.0 + mu * np.tan(RAMP))
    force = np.where(x < CLICK, up * drag_over_lift(RAMP, mu), 0.5 * LIFT * mu)
    return x, STIFFNESS * np.where(x < SHOULDER, force, down * pushing)


def measured(curve, true, noise, seed=0, upto=None):
    """What a sensor reads that samples the travel evenly: a plug on a base that gives way jumps."""
    s, _, c, x0 = true
    y, f = curve
    x = np.maximum.accumulate(y + c * s * f + x0) + 1e-12 * np.arange(y.size)
    at = np.linspace(x[0], x[-1], SAMPLES)
    force = np.interp(at, x, s * f) + noise * np.random.default_rng(seed).normal(size=at.size)
    kept = at < (at[-1] + 1.0 if upto is None else upto)
    return at[kept], force[kept]


def test_what_was_put_in_comes_out_of_closed_forms():
    """Splines over friction 0.05 apart; a jump hides less than one of the samples' 17 um."""
    found = insertion_constants(measured(wedge(TRUE[1]), TRUE, 0.0), wedge)
    assert found.stiffness.value == pytest.approx(TRUE[0], rel=0.01)
    assert found.friction.value == pytest.approx(TRUE[1], rel=0.02)
    assert found.compliance.value == pytest.approx(TRUE[2], rel=0.15)
    assert found.offset.value == pytest.approx(TRUE[3], abs=2e-5)
    assert all(one.told for one in found[:4])


def test_true_constants_lie_within_two_standard_errors():
    """Of 20 measurements with noise of 1% of the peak; binomial: of 60 draws, 0.95 less four deviations."""
    curve = wedge(TRUE[1])
    noise = 0.01 * TRUE[0] * curve[1].max()
    inside, errors = [], []
    for seed in range(20):
        found = insertion_constants(measured(curve, TRUE, noise, seed), wedge)
        inside += [abs(c.value - t) <= SIGMAS * c.error for c, t in zip(found[:3], TRUE, strict=False)]
        errors.append([c.error for c in found[:3]])
    assert np.mean(inside) > 0.83
    # and they say something
    assert (np.mean(errors, axis=0) < [0.05, 0.02, 2e-6]).all()


def test_a_ramp_alone_tells_none_of_them_apart():
    """F = s k d(mu) (x - c F - x0): one slope for three unknowns. Only where it begins is told."""
    curve = wedge(TRUE[1])
    found = insertion_constants(measured(curve, TRUE, 0.2, upto=4e-3), wedge)
    assert not (found.clicked or found.slid or found.pushed)
    assert not (found.stiffness.told or found.friction.told)
    assert found.offset.told and found.offset.value == pytest.approx(TRUE[3], abs=5e-5)


@pytest.fixture(scope="module")
def models():
    """The paper's connector pushed in on two meshes, curves kept."""
    known: dict = {}

    def pushed(mesh, mu):
        if (mesh, mu) not in known:
            case = case_of("two-prong", mesh)
            field = exact_distance(case.connector)
            known[mesh, mu] = push_in(case.connector, replace(case.numerics, friction=mu), field)
        return known[mesh, mu]

    return pushed


def test_a_coarse_model_recovers_what_a_finer_one_was_measured_with(models):
    """Another mesh, modulus and friction, a base that gives way, noise of 1% of the peak."""
    curve, true = models("fine", 0.18), (1.25, 0.18, 3e-6, 1e-4)
    found = insertion_constants(
        measured(curve, true, 0.0125 * curve[1].max()), lambda mu: models("coarse", round(mu, 6)), 0.3
    )
    # the meshes differ by 1% in stiffness, and by a step in where an edge is passed
    assert found.stiffness.value == pytest.approx(true[0], rel=0.04)
    assert found.friction.value == pytest.approx(true[1], abs=0.012)
    assert found.compliance.value == pytest.approx(true[2], abs=1.5e-6)
    assert all(one.told for one in found[:4])


def test_what_two_meshes_differ_by_is_an_error():
    """Three times the difference are two standard errors; a constant that one cannot tell is not told."""
    one = insertion_constants(measured(wedge(TRUE[1]), TRUE, 0.5), wedge)
    other = one._replace(
        stiffness=one.stiffness._replace(value=one.stiffness.value + 0.1),
        friction=one.friction._replace(told=False),
    )
    both = beside(one, other)
    assert both.stiffness.error == pytest.approx(np.hypot(one.stiffness.error, 0.15))
    assert not both.friction.told and both.compliance == one.compliance


def test_what_is_no_insertion_is_refused_in_words():
    x = np.linspace(0.0, 5e-3, 100)
    with pytest.raises(InputError, match="nowhere positive"):
        insertion_constants((x, -x * 1e4), wedge)
    with pytest.raises(InputError, match="give 20 or more"):
        insertion_constants((x[:5], x[:5]), wedge)
    with pytest.raises(InputError, match="finite pairs"):
        insertion_constants((x, np.nan * x), wedge)


def test_a_sensor_s_file_is_read_by_its_columns(tmp_path):
    path = tmp_path / "force.csv"
    path.write_text("# a sensor\ntime_s,force_N\n0.0,0.0\n0.1,2.5\n")
    travel, force = measured_curve(path, 0.05)
    np.testing.assert_allclose([travel, force], [[0.0, 0.005], [0.0, 2.5]])
    with pytest.raises(Refusal, match="no column travel_m; with --speed, time_s will do"):
        measured_curve(path, None)
    path.write_text("travel_m,force_N\n0.0,x\n")
    with pytest.raises(Refusal, match=r"force\.csv: could not convert"):
        measured_curve(path, None)
