"""A benchmark's figures as tables: what is compared is a line, and no list is long."""

import io
import math

import pytest
from rich.console import Console

from palpo.benchmarks.tables import MOST_COLUMNS, print_bench
from palpo.benchmarks.timing import beside, within

TIMES = {"p50": 20.0, "p99": 61.5, "p999": 70.0, "max": 71.0}


def lines(figures, name="some"):
    """What is printed, line by line, without frames and runs of blanks."""
    console = Console(file=io.StringIO(), highlight=False, markup=False)
    print_bench({name: figures}, console)
    return [" ".join(line.split()) for line in console.file.getvalue().splitlines()]


def test_each_comparison_is_one_line_with_ours_the_other_and_the_ratio():
    cases = {f"case {k}": {"p50 us": beside(2.0 * k, 4.0, "other one"), "n": k} for k in (1, 2, 3)}
    said = lines(cases)
    for k in (1, 2, 3):
        assert f"case {k}, p50 us {2 * k} 4 {0.5 * k:g} other one" in said


@pytest.mark.parametrize(("value", "word"), [(4.0, "kept"), (6.0, "EXCEEDED")])
def test_a_limit_is_told_with_whether_it_is_kept(value, word):
    assert f"p99 ms {value:g} 5 {value / 5:g} the limit, {word}" in lines(
        {"target p99 ms": within(value, 5.0)}
    )


def test_a_ratio_to_nothing_is_not_a_number():
    assert math.isnan(within(3.0, 0.0)["ratio"])
    assert math.isnan(beside(3.0, 0.0, "none")["ratio"])


def test_cases_nested_in_cases_are_compared_by_their_full_name():
    both = {
        "plain": {"ms": 2.0, "sweeps": 9},
        "ours": {"ms": 1.0, "sweeps": 3},
        "ms": beside(1.0, 2.0, "plain"),
    }
    said = lines({"jam": {"1e-4": both, "1e-8": both}, "stack": {"1e-4": both, "1e-8": both}})
    for case in ("jam, 1e-4", "jam, 1e-8", "stack, 1e-4", "stack, 1e-8"):
        assert f"{case}, ms 1 2 0.5 plain" in said


def test_few_cases_stand_beside_each_other_and_many_below():
    case = {"nodes": 12, "step ms": TIMES, "rows": {"mean": 3.0, "most": 7}}
    few = lines({"a": case, "b": case, "bare loop us": TIMES})
    assert "nodes 12 12" in few
    assert "step ms (p50 / p99) 20 / 61.5 20 / 61.5" in few
    assert "rows (mean, most) 3, 7 3, 7" in few
    assert "bare loop us 20 61.5 70 71" in few
    many = lines({f"mesh {k}": case for k in range(12)})
    assert all(f"mesh {k} 12 20 / 61.5 3, 7" in many for k in range(12))


def test_a_table_over_time_keeps_its_columns():
    said = lines({"over time": {"columns": ("MB", "late us"), "1 s": (200.5, 33.0), "2 s": (201.0, 34.0)}})
    assert "MB late us" in said
    assert "1 s 200.5 33" in said and "2 s 201 34" in said


def test_single_figures_and_short_tables_are_a_line_each():
    said = lines({"exit": "0: finished", "missed": {"servo": 3, "bare loop": 5}, "rate Hz": 999.6})
    assert "exit 0: finished" in said
    assert "missed (servo, bare loop) 3, 5" in said
    assert "rate Hz 999.6" in said


def test_large_results_stay_short():
    parts = {f"stage {k}": TIMES for k in range(9)}
    case = {f"figure {k}": float(k) for k in range(20)} | {
        "step ms": beside(1.0, 2.0, "x"),
        "parts ms": parts,
    }
    said = lines({"scenes": {f"scene {k}": case for k in range(20)}, "bare loop us": TIMES})
    # a line a case in both tables, and what stands around them
    assert len(said) <= 2 * 20 + 20
    assert sum(line.startswith("scene 7 ") for line in said) == 1
    assert len(next(line for line in said if line.startswith("scene 7 ")).split()) == 2 + MOST_COLUMNS


@pytest.mark.parametrize(
    "figures", [{}, {"a": {}}, {"a": {}, "b": {}}, {"a": None, "b": [1, 2]}, {"x": {"y": {"z": {"w": 1}}}}]
)
def test_whatever_a_benchmark_returns_is_printed(figures):
    assert "some" in lines(figures)
