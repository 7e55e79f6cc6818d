"""Air through gaps and rough contacts: limits, closed forms and published values."""

import math

import numpy as np
import pytest
from scipy.special import erf

from palpo.physics.gas.law import (
    SLIP,
    VISCOSITY,
    leak,
    mean_free_path,
    rarefaction,
    ring_conductance,
    sheet_conductance,
    slot_conductance,
)
from palpo.physics.gas.roughness import GAMMA, PERCOLATION, RoughSurface, contact_gap, seal_of
from palpo.physics.numerics.errors import InputError

ATMOSPHERE, RT = 101325.0, 8.314462618 * 293.15
SANDED = RoughSurface(10e-6, 500e-6)


def gap_of(delta):
    """The gap [m] whose rarefaction parameter is delta, at one atmosphere."""
    return delta * 2.0 * mean_free_path(ATMOSPHERE, RT) / math.sqrt(math.pi)


def test_air_has_the_mean_free_path_of_the_tables():
    # S. G. Jennings, J. Aerosol Sci. 19 (1988) 159: 65.4 nm at 20 degrees C, with another digit of viscosity
    assert mean_free_path(ATMOSPHERE, RT) == pytest.approx(65.4e-9, rel=0.01)


def test_a_slot_s_flow_is_poiseuille_s_between_plates_where_it_is_wide():
    """A small excess dp drives (width gap^3 / 12 eta L) dp of the atmosphere's air."""
    width, gap, length, dp = 0.1, 3e-4, 4e-3, 1.0
    flow = (
        slot_conductance(width, gap, length, ATMOSPHERE, RT) * (ATMOSPHERE**2 - (ATMOSPHERE - dp) ** 2) / RT
    )
    laminar = width * gap**3 / (12 * VISCOSITY * length) * dp * ATMOSPHERE / RT
    # Kn = 2e-4: slip adds 7 Kn
    assert flow == pytest.approx(laminar, rel=2e-3) and flow > laminar


def test_thick_gaps_slip_and_thin_ones_let_free_molecules_through():
    """Both ends of the linearised Boltzmann equation between plates, in its flow rate Q = F delta / 6."""
    delta = 200.0
    slip = (rarefaction(gap_of(delta), ATMOSPHERE, RT) - 1.0) * delta / 6.0
    assert slip == pytest.approx(SLIP, rel=1e-3)
    one, two = (rarefaction(gap_of(d), ATMOSPHERE, RT) * d / 6.0 for d in (1e-6, 1e-7))
    # Q goes as -ln(delta) / sqrt(pi)
    assert two - one == pytest.approx(math.log(10.0) / math.sqrt(math.pi), rel=1e-3)


@pytest.mark.parametrize(("delta", "published"), [(0.01, 3.05), (0.1, 2.03), (1.0, 1.54), (10.0, 2.77)])
def test_between_both_ends_the_flow_is_near_the_numerical_solution(delta, published):
    flow = rarefaction(gap_of(delta), ATMOSPHERE, RT) * delta / 6.0
    assert 0.75 * published < flow < 1.02 * published


def test_a_tenth_of_a_millimetre_lets_5_kPa_out_of_a_cup_in_a_third_of_a_millisecond():
    """The smaller cup of a pipe study: 3 cm3, a rim of 24 mm across and 4 mm wide."""
    volume, slot = 3e-6, slot_conductance(2 * math.pi * 12e-3, 1e-4, 4e-3, ATMOSPHERE, RT)
    n, rest = (p * volume / RT for p in (ATMOSPHERE - 5e3, ATMOSPHERE))
    left = [(rest - leak(n, volume, slot, ATMOSPHERE, RT, h)) / (rest - n) for h in (1e-4, 3e-4, 1e-3)]
    # volume / (k width / L P_atm) = 0.34 ms
    assert left[0] > math.exp(-1.0) > left[2]
    assert left[1] == pytest.approx(math.exp(-3e-4 / 3.4e-4), rel=0.1)


def test_rings_of_one_height_conduct_as_the_logarithm_of_their_radii_says():
    radius = np.linspace(16e-3, 20e-3, 33)
    k = sheet_conductance(1e-5, ATMOSPHERE, RT)
    g, share = ring_conductance(radius, np.full(33, k))
    assert g == pytest.approx(math.pi * k / math.log(20 / 16), rel=1e-5)
    np.testing.assert_allclose(share, np.log(radius / 16e-3) / math.log(20 / 16), atol=1e-5)


def test_the_tightest_ring_decides_and_a_shut_one_lets_nothing_pass():
    radius = np.linspace(16e-3, 20e-3, 401)
    sheet = np.where(abs(radius - 18e-3) < 2e-4, 1e-18, 1e-9)
    g, share = ring_conductance(radius, sheet)
    alone = math.pi * 1e-18 / math.log(18.2 / 17.8)
    # the ring's ends lie within a step of 0.01 mm
    assert g == pytest.approx(alone, rel=0.06)
    assert share[150] < 1e-6 and share[250] > 1.0 - 1e-6
    sheet[200] = 0.0
    g, share = ring_conductance(radius, sheet)
    assert g == 0.0 and share[199] == 0.0 and share[200] == 1.0


def test_a_spectrum_s_waves_add_up_to_the_roughness():
    q = np.geomspace(SANDED.first, SANDED.last, 20001)
    square = np.trapezoid(2 * np.pi * q * SANDED.spectrum(q) * q, np.log(q))
    assert math.sqrt(square) == pytest.approx(SANDED.height, rel=1e-6)
    slope = np.trapezoid(2 * np.pi * q**3 * SANDED.spectrum(q) * q, np.log(q))
    assert SANDED.slope == pytest.approx(math.sqrt(slope), rel=1e-6)


def test_under_little_pressure_the_area_grows_with_it_by_persson_s_factor():
    load = 1e-3 * SANDED.slope
    assert SANDED.touching(load) == pytest.approx(math.sqrt(8 / math.pi) * load / SANDED.slope, rel=1e-5)


@pytest.mark.parametrize("hurst", [0.5, 0.8])
def test_pressing_takes_the_work_that_is_stored(hurst):
    """int p du against Persson's elastic energy; the separation is derived from it."""
    surface = RoughSurface(3e-6, 1e-4, hurst=hurst)
    q = np.geomspace(surface.first, surface.last, 4001)

    def stored(load):
        half = np.concatenate([[0.0], np.cumsum(np.diff(q) * (q[1:] ** 3 * surface.spectrum(q[1:])
            + q[:-1] ** 3 * surface.spectrum(q[:-1])) / 2)]) * np.pi  # fmt: skip
        with np.errstate(divide="ignore"):
            share = erf(load / np.sqrt(half))
        energy = q**3 * surface.spectrum(q) * share * (GAMMA + (1 - GAMMA) * share**2)
        return np.pi / 2 * np.trapezoid(energy, np.log(q))

    loads = np.geomspace(0.01, 0.3, 101) * surface.shutting
    apart = np.array([surface.separation(load) for load in loads])
    # both quadratures are of the second order in steps of a few hundredths
    assert -np.trapezoid(loads, apart) == pytest.approx(stored(loads[-1]) - stored(loads[0]), rel=2e-3)


def test_under_little_pressure_the_separation_falls_by_0_4_of_the_roughness_for_each_e_times_more():
    """u_0 = 0.4 to 0.5 h_rms (B. N. J. Persson, Phys. Rev. Lett. 99 (2007) 125502)."""
    loads = SANDED.shutting * np.array([1e-5, 1e-4, 1e-3])
    falls = -np.diff([SANDED.separation(load) for load in loads]) / math.log(10.0) / SANDED.height
    assert 0.38 < falls.min() <= falls.max() < 0.52
    # exponential: the same fall for each decade
    assert falls[0] == pytest.approx(falls[1], rel=0.02)


def test_surfaces_that_differ_by_scale_alone_have_gaps_that_do():
    twice = RoughSurface(20e-6, 1000e-6)
    for load in (1e-4, 1e-2, 0.1):
        assert twice.narrowest(load) == pytest.approx(2.0 * SANDED.narrowest(load), rel=1e-9)


def test_a_contact_that_touches_over_the_percolating_share_lets_nothing_pass():
    shut = SANDED.shutting
    assert SANDED.touching(shut) == pytest.approx(PERCOLATION, rel=1e-9)
    gaps = [SANDED.narrowest(load * shut) for load in (1e-6, 1e-4, 1e-2, 0.1, 0.5, 0.9, 1.0, 2.0)]
    assert np.all(np.diff(gaps) <= 0.0) and gaps[5] > 0.0 and gaps[6:] == [0.0, 0.0]
    # and closes without a jump
    assert SANDED.narrowest(0.999 * shut) < 0.1 * gaps[5]


def test_a_seal_s_table_gives_the_gap_of_its_surface():
    modulus = 4.1e5
    seal = seal_of(SANDED, modulus)
    for load in SANDED.shutting * np.array([3.1e-6, 2.7e-4, 0.013, 0.09]):
        wanted = SANDED.narrowest(load)
        # straight lines over steps of ln p = 0.14 of a curve that bends over several
        assert contact_gap(seal, load * modulus) == pytest.approx(wanted, rel=0.02)
    assert contact_gap(seal, 0.0) == contact_gap(seal, 1e-12) == seal.gap[0]
    assert contact_gap(seal, 1.01 * SANDED.shutting * modulus) == 0.0


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: RoughSurface(0.0, 1e-4), "h_rms = 0.0"),
        (lambda: RoughSurface(1e-6, 1e-4, 1e-3), "longest wavelength above the shortest"),
        (lambda: RoughSurface(1e-6, 1e-4, hurst=1.0), "H between 0 and 1"),
        (lambda: seal_of(SANDED, 0.0), "must be positive"),
    ],
)
def test_what_is_no_surface_is_refused_in_words(make, said):
    with pytest.raises(InputError, match=said):
        make()
