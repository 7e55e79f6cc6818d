"""Quantities: numbers are SI, strings carry a unit, and a unit of the wrong kind is refused."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palpo.config.schema.units import UNITS, Quantity

# The conversion is one product of two doubles.
ROUNDING = 1e-15


@pytest.mark.parametrize(
    ("kind", "text", "si"),
    [
        ("length", "5 mm", 5e-3),
        ("length", "-2.5cm", -2.5e-2),
        ("pressure", "3 kPa", 3e3),
        ("pressure", "1.5e-1 GPa", 1.5e8),
        ("frequency", "200 Hz", 200.0),
        ("angle", "180 deg", math.pi),
        ("stiffness", "0.5 N/mm", 500.0),
        ("damping", "2 N.s/m", 2.0),
        ("damping", "2 N*s/m", 2.0),
        ("rotational damping", "3 N m s/rad", 3.0),
        ("time", "20 µs", 20e-6),
        ("density", "1.06 g/cm^3", 1060.0),
    ],
)
def test_text_with_a_unit_is_its_si_value(kind, text, si):
    assert Quantity(kind).to_si(text) == pytest.approx(si, rel=ROUNDING)


@given(st.sampled_from([kind for kind in UNITS if kind != "number"]), st.floats(-1e6, 1e6), st.data())
def test_every_unit_converts_by_its_factor(kind, value, data):
    unit = data.draw(st.sampled_from(list(UNITS[kind])))
    assert Quantity(kind).to_si(f"{value!r} {unit}") == pytest.approx(value * UNITS[kind][unit], rel=ROUNDING)


@given(st.sampled_from(list(UNITS)), st.floats(allow_nan=False, allow_infinity=False))
def test_a_plain_number_is_si(kind, value):
    assert Quantity(kind).to_si(value) == value


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        ("length", "3 kPa", "is a pressure where a length is needed"),
        ("length", "3", "has no unit"),
        ("length", "3 furlong", "has an unknown unit 'furlong'"),
        ("length", "long", "is no length"),
        ("length", True, "is no length"),
        ("length", None, "is no length"),
        ("length", math.nan, "is not finite"),
        ("length", -math.inf, "is not finite"),
        ("number", "0.3", "without quotes"),
        ("number", "0.3 m", "is a length where a number is needed"),
    ],
)
def test_what_is_no_such_quantity_is_refused_in_words(kind, value, said):
    with pytest.raises(ValueError, match=said):
        Quantity(kind).to_si(value)


def test_the_first_unit_of_each_kind_is_si():
    assert all(next(iter(units.values())) == 1.0 for units in UNITS.values())
