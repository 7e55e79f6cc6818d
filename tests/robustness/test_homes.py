"""The program runs and ends well for a user without a home, or whose home cannot be written."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from palpo.physics.numerics.kernels import cache_home
from palpo.physics.numerics.shipped import NATIVE

ROOT = Path(__file__).resolve().parents[2]
HOMELESS = """
import pathlib, sys
def none():
    raise RuntimeError("Could not determine home directory.")
pathlib.Path.home = none
from palpo.app.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
"""As `palpo`, for a user that the system knows no home of, as `docker run --user 12345` makes one."""
PLACES = ("HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "MPLCONFIGDIR")


def ends_well(begin: list[str], command: list[str], tmp_path: Path, **places: str) -> None:
    """Run a command, all of the user's folders being as told."""
    env = {name: value for name, value in os.environ.items() if name not in PLACES}
    # compiled code stays where it is: without a place for it, it is compiled in each run
    kept = {
        "NUMBA_CACHE_DIR": str(cache_home()),
        "TMPDIR": str(tmp_path),
        "PYTHONPATH": str(ROOT),
        NATIVE: "1",
    }
    done = subprocess.run(
        [sys.executable, *begin, *command], env=env | kept | places, cwd=tmp_path, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "Traceback" not in said and "Warning" not in said, said


@pytest.mark.skipif(sys.platform == "win32", reason="a home of POSIX")
@pytest.mark.parametrize("home", ["none", "file"])
def test_a_scene_is_run_and_recorded(home, tmp_path):
    places, begin = {}, ["-c", HOMELESS]
    if home == "file":  # whoever runs this, root included, can make no folder there
        (tmp_path / "home").write_text("in the way")
        places, begin = {"HOME": str(tmp_path / "home")}, ["-m", "palpo"]
    run = ["run", "probe", "--headless", "--lock-step", "--device", "mock", "--duration", "0.2"]
    ends_well(begin, [*run, "--record", "run.h5"], tmp_path, **places)
    assert (tmp_path / "run.h5").stat().st_size > 0
