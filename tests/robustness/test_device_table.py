"""A device is one file and one line in the table: nothing else in the program knows it by name."""

import re
from pathlib import Path
from typing import get_args

import pytest

from palpo.app.cli import doctor
from palpo.app.devices import table
from palpo.app.devices.device import Device
from palpo.app.devices.mock import scripted_path
from palpo.app.report.outcome import FINISHED
from palpo.app.runtime.options import Options
from palpo.app.runtime.session import run
from palpo.config.schema.device import HapticDevice as DeviceSection
from palpo.haptics.device_spec import DEVICES as MODELS
from palpo.haptics.errors import HapticsError

ROOT = Path(__file__).resolve().parents[2]


class Newcomer(Device):
    """Follows the scene's path, under another name."""

    word, about, argument = "newcomer", "a device of this test", "SPEED"

    def __init__(self, asked, argument):
        self.speed = argument

    @property
    def title(self):
        return f"newcomer at {self.speed}"

    def path(self, spec, held):
        return scripted_path(spec)


def test_a_new_device_needs_its_line_only(monkeypatch, capsys):
    monkeypatch.setattr(table, "DEVICES", (*table.DEVICES, Newcomer))
    done = run(Options("probe", device="newcomer:7", duration=0.02, lock_step=True, baseline=False))
    assert (done.status, done.result["device"]) == (FINISHED, "newcomer at 7")
    monkeypatch.setenv("COLUMNS", "200")
    doctor.print_devices()
    assert re.search(r"newcomer:SPEED +yes +a device of this test", capsys.readouterr().out)


def test_auto_offers_what_it_may_take_and_nothing_else():
    offered = table.offered()[table.AUTO]
    for device in table.DEVICES:
        assert (device.word in offered.split(" of ")[1].split(", ")) == device.automatic
        if not device.automatic:
            assert not device.there(Options("probe"))


def test_words_are_unique_and_auto_ends_at_one_that_is_always_there():
    words = [device.word for device in table.DEVICES]
    assert len(set(words)) == len(words) and table.AUTO not in words
    assert table.choose(Options("probe", lock_step=True)).word == "mock"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (Options("probe", device="falcon"), "choose one of auto, touch"),
        (Options("probe", device="mock:fast"), "there is no such device"),
        (Options("probe", device="mouse"), "no window"),
        (Options("probe", device="touch", lock_step=True), "lock-step"),
        (Options("probe", device="replay"), "name a file"),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_sentence(options, words):
    with pytest.raises(HapticsError, match=words):
        table.choose(options)


def test_the_models_that_a_scene_may_name_are_those_that_have_figures():
    allowed = DeviceSection.model_fields["model"].annotation
    assert set(get_args(allowed)) == set(MODELS)


def test_what_a_device_tells_is_its_state_and_is_heard_once():
    made, heard = Newcomer(None, ""), []
    made.heard = heard.append
    for words in ("take it", "take it", "", "take it"):
        made.tell(words)
    assert made.state == "take it" and heard == ["take it", "take it"]


def test_no_other_file_of_the_program_asks_for_a_device_by_name():
    asks = re.compile(r"[=!]= ?\"(?:" + "|".join(device.word for device in table.DEVICES) + r")\"")
    imports = re.compile(r"palpo\.app\.devices\.(?!device\b|table\b|protection\b|hands\b|profile\b)(\w+)")
    for room in ("app", "haptics", "render"):
        for path in (ROOT / room).rglob("*.py"):
            if path.parent != ROOT / "app" / "devices":
                text = path.read_text("utf-8")
                assert not asks.search(text) and not imports.search(text), path.relative_to(ROOT)
