"""Needles as people meet them: the command, the reading, and what a file may not say."""

import csv

import pytest

import palpo
from palpo.app.cli.main import main
from palpo.app.report import figures
from palpo.app.runtime.options import Options
from palpo.app.runtime.session import Session
from palpo.haptics.cues import CLICK


def test_the_command_writes_force_over_depth_on_both_ways(tmp_path, capsys):
    assert main(["needle", "biopsy", "--depth", "8", "--speed", "40", "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert "needle in liver: the surface gives way at" in said
    with (tmp_path / "out" / "needle.csv").open(encoding="utf-8") as file:
        rows = [{key: float(value) for key, value in row.items()} for row in csv.DictReader(file)]
    deepest = max(range(len(rows)), key=lambda k: rows[k]["depth_m"])
    assert rows[deepest]["depth_m"] >= 0.008
    assert max(row["force_along_N"] for row in rows[:deepest]) > 0.4
    assert min(row["force_along_N"] for row in rows[deepest:]) < -0.05
    assert rows[-1]["depth_m"] == 0.0
    assert (tmp_path / "out" / "needle.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["probe"], "a table `needles`"),
        (["biopsy", "--depth", "0"], "--depth 0"),
        (["biopsy", "--speed", "nan"], "--speed nan"),
        (["biopsy", "--depth", "200", "--speed", "500"], "give a lesser depth"),
    ],
)
def test_what_cannot_be_done_is_said(arguments, told, tmp_path, capsys):
    assert main(["needle", *arguments, "--out", str(tmp_path / "out")]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("needles.0.body", "liver", "a beam, or a rigid body whose geometry is a capsule"),
        ("needles.0.tissue", "needle", "a needle goes into a soft one"),
        ("needles.0.tissue", "nobody", "no such body"),
        ("needles.0.cutting", "2 N", "below puncture"),
        ("needles.0.puncture", "0 N", r"needles\[0\].puncture"),
        ("needles.0.friction", "-1 N/m", r"needles\[0\].friction"),
        (
            "bodies.liver.geometry",
            {"kind": "block", "size": [0.1, 0.07, 0.1], "divisions": [4, 4, 4]},
            "into tetrahedra",
        ),
        ("solver.name", "anderson", "gauss-seidel"),
        ("interface.kind", "paper", "krylov"),
    ],
)
def test_a_file_that_cannot_be_is_refused_in_words(key, value, told):
    more = {"bodies.liver.elements": "hex8"} if told == "into tetrahedra" else {}
    with pytest.raises(palpo.Refusal, match=told):
        palpo.load("biopsy", {key: value, **more}).build()


def test_a_needle_outside_has_no_channel():
    [needle] = palpo.load("biopsy").build().start().needles
    assert (needle.needle, needle.tissue) == ("needle", "liver")
    assert (needle.depth, needle.inside, len(needle.path)) == (0.0, 0.0, 0)


def test_a_puncture_is_felt_and_heard_as_a_click():
    session = Session(Options("biopsy", device="mock", baseline=False, lock_step=True, duration=2.5))
    session.prepare()
    series = session.run().series
    assert session.rig.servo.cues.counts[CLICK] == 1
    # its report marks the same one, at the force that the surface gives way at, and nothing else
    [axes] = figures.needles(series).axes
    assert [text.get_text() for text in axes.texts] == ["puncture"]
    outside = series["needle_inside_m"][:, 0] == 0.0
    assert series["needle_along_N"][outside, 0].max() == pytest.approx(0.6, rel=0.1)
    assert series["needle_inside_m"].max() > 0.005
