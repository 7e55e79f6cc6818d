"""The largest factor that is borne is found to a bisection's width, beside the factors that are tried
anyway."""

import pytest

from palpo.studies.hapco_limits import WIDTH, largest, scanned

GRID = (0.5, 1.0, 1.5, 2.0, 3.0)


def rows_of(limit, factors=GRID):
    tried = []

    def at(factor):
        tried.append(factor)
        return [{"factor": factor, "met": True}, {"factor": factor, "met": factor <= limit}]

    return list(scanned(factors, at)), tried


@pytest.mark.parametrize("limit", [0.7, 1.2345, 2.0, 2.999])
def test_the_limit_is_bracketed_to_the_width(limit):
    rows, tried = rows_of(limit)
    most, beyond = largest(rows)
    assert most <= limit < beyond[0]["factor"] <= (1.0 + WIDTH) * most
    assert tried[: len(GRID)] == list(GRID) and len(rows) == 2 * len(tried)


@pytest.mark.parametrize(("limit", "most"), [(9.0, 3.0), (0.1, 0.0)])
def test_where_none_or_each_fails_nothing_is_between(limit, most):
    rows, tried = rows_of(limit)
    assert largest(rows)[0] == most and tried == list(GRID)


def test_a_factor_borne_again_beyond_a_failure_is_no_limit():
    rows = [{"factor": factor, "met": factor != 1.5} for factor in GRID]
    assert largest(rows) == (1.0, [{"factor": 1.5, "met": False}])
