"""A device in a package of its own is a class and a line: it is offered, chosen and followed like others."""

from pathlib import Path

import numpy as np
import pytest

import palpo
from palpo.app.devices import table
from palpo.haptics.errors import HapticsError

FOLDER = Path(__file__).parent


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Installs the package as pip would, with this line in its metadata."""
    told = tmp_path / "site" / "other_device-1.0.dist-info"
    told.mkdir(parents=True)
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: other_device\nVersion: 1.0\n")
    (tmp_path / "site" / "other_device").symlink_to(FOLDER / "other_device", target_is_directory=True)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))

    def line(text):
        (told / "entry_points.txt").write_text(f"[{table.GROUP}]\n{text}\n")
        table.brought.cache_clear()

    yield line
    table.brought.cache_clear()


def test_it_is_offered_and_its_hand_goes_where_it_says(install):
    install("circle = other_device:Circle")
    assert table.offered()["circle"] == "a hand that goes around a circle"
    done = palpo.run("probe", "circle", lock_step=True, duration=0.5)
    assert done.result["device"] == "circling hand"
    held, turn = done.series["position_m"][0], 2.0 * np.pi * done.series["time_s"]
    around = np.stack([np.cos(turn) - 1.0, np.sin(turn), np.zeros_like(turn)], axis=1)
    # the simulated hand yields to what it feels: a grip of 1 N/mm at less than 1 N
    assert np.abs(done.series["position_m"] - (held + 5e-3 * around)).max() < 1.5e-3


def test_without_the_line_there_is_no_such_device(install):
    install("")
    with pytest.raises(HapticsError, match="there is no such device"):
        table.kind_of("circle")


@pytest.mark.parametrize(
    ("line", "why"),
    [("a = other_device:NOTHING", "NOTHING"), ("b = pathlib:Path", "Device"), ("c = json:loads", "class")],
)
def test_what_is_no_device_is_left_out_with_a_warning(install, line, why):
    install(line)
    with pytest.warns(UserWarning, match=f"the device . .* is left out: .*{why}"):
        assert table.devices() == table.DEVICES
