"""`palpo demo`: without a screen it leaves pictures and an animation, with one it lends the tool."""

import json
import os
import subprocess
import sys

import pytest
from PIL import Image

from palpo.app.cli import main as cli
from palpo.app.cli import running
from palpo.app.cli.summary import print_places
from palpo.render.offscreen import EglContext, RenderUnavailable
from tests.realtime.xserver import display  # noqa: F401  (a fixture)


def test_without_a_screen_the_report_holds_an_animation_and_the_places_are_told(tmp_path, capsys):
    try:
        EglContext().close()
    except RenderUnavailable as why:
        pytest.skip(str(why))
    folder = tmp_path / "demo"
    assert cli.main(["demo", "--headless", "--duration", "2", "--report", str(folder)]) == 0
    said = capsys.readouterr().out.replace("\n", " ")
    for name in ("report.html", "animation.gif", "picture_01_at_the_start.png"):
        assert str(folder / name) in said
    with Image.open(folder / "animation.gif") as film:
        assert 2 <= film.n_frames <= 21  # one in a tenth of a second, fewer on a machine that is late
    assert "data:image/gif;base64," in (folder / "report.html").read_text(encoding="utf-8")
    assert len(list(folder.glob("picture_*.png"))) >= 3


def test_the_demo_is_reported_below_out_unless_told_otherwise():
    options = cli._parser().parse_args(["demo"])
    assert options.report == running.DEMO_REPORT
    assert options.duration == running.SHOWN


def test_where_nothing_can_be_drawn_the_page_is_told_and_why(tmp_path, capsys):
    (tmp_path / "report.html").write_text("why")
    print_places(tmp_path)
    said = capsys.readouterr().out
    assert "report.html" in said
    assert "No pictures: the page says why" in said


def test_in_a_window_the_hand_that_shows_it_is_followed_by_ones_own(display, tmp_path):  # noqa: F811
    pytest.importorskip("imgui_bundle", reason="the panel's library is not installed (extra: window)")
    from palpo.app.runtime.operator import SHOWN_FIRST, YOURS

    code = (
        "import json, sys\n"
        "from palpo.app.runtime.operator import Operator\n"
        "from palpo.app.cli.progress import Silent\n"
        "from palpo.app.runtime.options import Options\n"
        "shown = Options('probe', device='mock', duration=0.5, window=True, baseline=False)\n"
        "lent = Options('probe', device='auto', duration=0.5, window=True, baseline=False)\n"
        "with Operator(Silent()) as operator:\n"
        "    done = operator.run(shown, lent)\n"
        "    print(json.dumps([done.status, done.result['device'], operator._status, operator.messages]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"DISPLAY": display},
        capture_output=True,
        text=True,
        timeout=600,
    )
    if "is not available here" in done.stderr:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr
    status, device, (words, level), messages = json.loads(done.stdout.strip().splitlines()[-1])
    assert (status, device, level) == (0, "mouse", "good")
    assert words == YOURS
    assert "drag with the left button" in words
    assert messages[0] == SHOWN_FIRST and YOURS in messages
