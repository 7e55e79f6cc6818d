"""What a designer of a snap connector is told: static shapes, loads, grown parts, force over travel."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse.linalg import spsolve

from palpo.app.cli.design import Limits, row_of, share_of
from palpo.app.systems.snap.build import field_of, numerics_of
from palpo.app.systems.snap.connector import connector_of
from palpo.config.load import load_scene
from palpo.physics.fem.material import Material
from palpo.physics.fem.stress import NodalLoad
from palpo.physics.mesh.generate import block
from palpo.physics.mesh.grown import grown
from palpo.physics.numerics.errors import InputError
from palpo.physics.reduction.linear_model import linear_model
from palpo.physics.reduction.static_modes import static_shapes
from palpo.physics.systems.snap.travel import bearing, push_and_pull

STEEL = Material(2e11, 0.3, 7800.0)


@pytest.fixture(scope="module")
def bar():
    return block((0.02, 0.02, 0.08), (2, 2, 6))


def test_static_shapes_lose_nothing_of_what_forces_on_their_nodes_do(bar):
    clamped = np.flatnonzero(bar.nodes[:, 2] < bar.nodes[:, 2].min() + 1e-9)
    loaded = np.flatnonzero(bar.nodes[:, 2] > bar.nodes[:, 2].max() - 1e-9)
    model = linear_model(bar, STEEL, clamped)
    basis = static_shapes(model, loaded)
    force = np.zeros(model.n_dof)
    force[model.dofs_of(loaded)] = np.random.default_rng(0).normal(size=3 * len(loaded))
    exact = spsolve(model.K.tocsc(), force)
    reduced = basis.vectors @ ((basis.vectors.T @ force) / basis.stiffness)
    # conditioning of K times the rounding of a double
    np.testing.assert_allclose(reduced, exact, atol=1e-8 * np.abs(exact).max())
    np.testing.assert_allclose(basis.vectors.T @ (model.M @ basis.vectors), np.eye(basis.order), atol=1e-10)


def test_static_shapes_of_a_body_that_nothing_holds_are_refused(bar):
    model = linear_model(bar, STEEL)
    with pytest.raises(InputError, match="do not hold the body"):
        static_shapes(model, np.arange(9))


def test_loads_of_a_uniform_strain_are_hookes(bar):
    """Pulled along z, free across: sigma = E eps, and the deviator's equivalent is sigma itself."""
    strain = 1e-3
    stretch = strain * np.array([-STEEL.poisson_ratio, -STEEL.poisson_ratio, 1.0])
    load = NodalLoad(bar.nodes, bar.tets, STEEL).at(bar.nodes * stretch)
    np.testing.assert_allclose(load.stress, STEEL.youngs_modulus * strain, rtol=1e-10)
    np.testing.assert_allclose(load.strain, strain, rtol=1e-10)


def test_equal_pressure_from_all_sides_is_no_equivalent_stress(bar):
    load = NodalLoad(bar.nodes, bar.tets, STEEL).at(-1e-3 * bar.nodes)
    assert load.stress.max() < 1e-9 * STEEL.youngs_modulus * 1e-3 * 1e3
    np.testing.assert_allclose(load.strain, -1e-3, rtol=1e-10)


@pytest.mark.parametrize("distance", [1e-3, -1e-3])
def test_a_grown_box_is_the_box_of_larger_sides(bar, distance):
    """Corners and edges too, which go farther than the faces."""
    surface = bar.surface().compact()
    size = np.ptp(surface.vertices, axis=0)
    larger = grown(surface, distance)
    np.testing.assert_allclose(np.ptp(larger.vertices, axis=0), size + 2.0 * distance, rtol=1e-9)
    assert larger.signed_volume == pytest.approx(np.prod(size + 2.0 * distance), rel=1e-9)


@pytest.fixture(scope="module")
def connector():
    spec = load_scene("snap", ["connector.mesh=coarse", "contact.spacing=0.002"])
    return connector_of(spec), numerics_of(spec), field_of(spec, connector_of(spec))


@pytest.fixture(scope="module")
def travel(connector):
    made, numerics, field = connector
    return push_and_pull(made, numerics, field, made.stroke / 3.0)


def test_a_stiffer_socket_pushes_back_in_proportion_and_is_strained_the_same(connector, travel):
    made, numerics, field = connector
    twice = replace(made.material, youngs_modulus=2.0 * made.material.youngs_modulus)
    stiffer = push_and_pull(replace(made, material=twice), numerics, field, made.stroke / 3.0)
    # the hold is as stiff as before, and lags twice as far: a fiftieth of a millimetre of 2.5
    assert stiffer.insertion.peak == pytest.approx(2.0 * travel.insertion.peak, rel=0.02)
    before = travel.insertion.at < travel.insertion.at_peak
    np.testing.assert_allclose(
        stiffer.insertion.strain[before], travel.insertion.strain[before], rtol=0.02, atol=2e-4
    )


def test_the_way_in_is_a_rise_a_plateau_a_click_and_rest(travel):
    inward = travel.insertion
    assert travel.latched and travel.released
    assert inward.force[inward.travel < 0.3 * inward.at_peak].max() < 0.01 * inward.peak
    assert 0.0 < inward.sliding < 0.5 * inward.plateau < inward.plateau <= inward.peak
    # a hook holds better than it lets in
    assert travel.retention.peak > inward.peak


def test_loads_are_judged_away_from_where_the_socket_is_touched(travel):
    prong = travel.model.connector.prongs[0]
    kept = bearing(prong)
    assert kept.any() and not kept[prong.contact].any()
    assert kept[prong.clamped].any()


def test_limits_say_which_connector_passes(travel):
    row = row_of(travel, Limits())
    assert row["passes"]
    peak = row["insertion_N"]
    assert not Limits(insertion_below=0.99 * peak).passes(row)
    assert Limits(insertion_below=1.01 * peak).passes(row)
    assert not Limits(retention_above=1.01 * row["retention_N"]).passes(row)
    assert not Limits(strain_below=0.99 * row["strain"]).passes(row)
    assert not Limits().passes({**row, "latched": False})
    assert not Limits(strain_below=1.0).passes({**row, "strain": math.nan})


def test_the_yields_interval_is_wilsons():
    """None of ten: from nothing to z^2 / (n + z^2) = 27.8 %; all of ten is its mirror."""
    none, whole = share_of(10 * [{"passes": False}]), share_of(10 * [{"passes": True}])
    upper = 1.96**2 / (10 + 1.96**2)
    assert none == pytest.approx((0.0, 0.0, upper), abs=1e-12)
    assert whole == pytest.approx((1.0, 1.0 - upper, 1.0), abs=1e-12)
