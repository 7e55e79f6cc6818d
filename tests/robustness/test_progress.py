"""How far a long start has come, and when it will be done."""

import io
import re

import numpy as np
import pytest
from rich.console import Console

from palpo.app.cli.progress import EACH, Progress, TimeLeft
from palpo.physics.bodies.quasistatic import BATCH, QuasistaticBody
from palpo.physics.fem.material import Material
from palpo.physics.mesh.generate import hex_block


@pytest.mark.parametrize("whole", [30.0, 90.0, 3000.0])
@pytest.mark.parametrize("before", [0.0, 700.0])
def test_at_an_even_pace_what_has_passed_and_what_is_left_are_the_whole(whole, before):
    """Whatever time went by before something could be told."""
    now = [before]
    pace = TimeLeft(lambda: now[0])
    assert pace.words(0.0) == "0%"
    for share in (0.01, 0.3, 0.99, 1.0):
        now[0] = before + share * whole
        words = pace.words(share)
        assert words.startswith(f"{100 * share:.0f}%, ")
        left, unit = re.search(r"(\d+) (s|min) left", words).groups()
        size = 60.0 if unit == "min" else 1.0
        assert size * int(left) + share * whole == pytest.approx(whole, abs=0.5 * size)


def test_an_uneven_pace_foretells_nothing():
    pace = TimeLeft()
    assert [pace.words(share, even=False) for share in (0.0, 0.5, 1.0)] == ["0%", "50%", "100%"]


@pytest.mark.parametrize("terminal", [False, True])
def test_a_stage_that_says_how_far_it_is_tells_the_time_left(terminal):
    """Every EACH seconds where there is no terminal, which is written over by each word."""
    now, out = [0.0], io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=120, highlight=False)
    progress = Progress(console, lambda: now[0])
    with progress.stage("K^-1"):
        for k in range(101):
            progress.come_to(k / 100)
            now[0] += 0.1 * EACH
    said = [int(left) for left in re.findall(r"(\d+) s left", out.getvalue())]
    assert said == sorted(said, reverse=True) and said[-1] == 0
    if not terminal:
        assert said == [90, 80, 70, 60, 50, 40, 30, 20, 10, 0]
    progress.come_to(0.5)
    assert len(re.findall(r"50%", out.getvalue())) <= 1, "a stage that is over tells no more"


def test_an_inverse_is_made_in_parts_of_one_size_and_is_symmetric():
    mesh, shares = hex_block((0.06, 0.02, 0.06), (9, 3, 9)), []
    clamped = np.flatnonzero(mesh.nodes[:, 1] < -0.0099)
    body = QuasistaticBody("b", mesh, Material(3e4, 0.4, 1000.0), clamped, progress=shares.append)
    loaded = np.intersect1d(body.surface_nodes, body.free).size
    assert loaded > 3 * BATCH
    assert shares == pytest.approx(np.minimum(np.arange(-(-loaded // BATCH) + 1) * BATCH / loaded, 1.0))
    a = body.boundary.compliance
    assert (a == a.T).all()
    free = np.repeat(np.isin(body.surface_nodes, body.free), 3)
    assert np.linalg.eigvalsh(a[np.ix_(free, free)])[0] > 0.0 and not a[~free].any()
