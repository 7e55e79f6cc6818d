"""Whether a change of the code has kept the forces: every shipped scene, in lock-step, before and after.

    python scripts/forces.py keep DIR [SCENE ...]       record them
    python scripts/forces.py compare DIR [SCENE ...]    run them again, and say by how much they differ

Each row of `compare` has the greatest difference over the run of what the hand feels, of what is sent to the
device, and of where the tool is, in shares of the greatest number of that kind. It ends with status 1 where a
scene is not recorded, does not run, or differs by more than `--most` says.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np

ROOT = Path(__file__).resolve().parents[1]
SCENES = sorted(path.stem for path in (ROOT / "config" / "scenes").glob("*.toml"))
FELT = tuple(f"servo/{what}_{axis}" for what in ("force", "torque", "sent", "held") for axis in "xyz")


def record(scene: str, file: Path, seconds: float) -> str:
    """A run of the scene in lock-step to that file; what went wrong, or nothing."""
    run = ["palpo", "run", scene, "--lock-step", "--headless", "--device", "mock", "--duration", str(seconds)]
    done = subprocess.run(
        [sys.executable, "-m", *run, "--record", str(file)], capture_output=True, text=True, check=False
    )
    return "" if done.returncode == 0 else (done.stderr or done.stdout).strip()[-300:]


def felt(file: Path) -> dict[str, np.ndarray]:
    """Columns of force and moment of a recording, by name."""
    columns = {}
    with h5py.File(file) as kept:
        kept.visititems(lambda name, item: columns.__setitem__(name, item[:]) if name in FELT else None)
    return columns


def difference(one: Path, two: Path) -> float:
    """Greatest difference between two recordings, in shares of the first one's greatest number of a kind."""
    a, b, worst = felt(one), felt(two), 0.0
    if a.keys() != b.keys() or any(a[name].shape != b[name].shape for name in a):
        return np.inf
    for kind in ("force", "torque", "sent", "held"):
        names = [name for name in a if name.startswith(f"servo/{kind}_")]
        scale = max((np.abs(a[name]).max(initial=0.0) for name in names), default=0.0)
        apart = max((np.abs(a[name] - b[name]).max(initial=0.0) for name in names), default=0.0)
        worst = max(worst, apart / scale if scale > 0.0 else (np.inf if apart > 0.0 else 0.0))
    return worst


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("keep", "compare"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("scenes", nargs="*", default=SCENES)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each scene's path")
    parser.add_argument("--most", type=float, default=1e-9, help="share of the peak that may differ")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    bad = 0
    for scene in given.scenes or SCENES:
        kept, new = given.folder / f"{scene}.h5", given.folder / f"{scene}.new.h5"
        new.unlink(missing_ok=True)
        wrong = record(scene, kept if given.what == "keep" else new, given.seconds)
        if wrong or not kept.exists():
            print(f"{scene:24} {wrong or 'was not recorded'}")
            bad += 1
        elif given.what == "keep":
            print(f"{scene:24} kept")
        else:
            apart = difference(kept, new)
            bad += apart > given.most
            print(f"{scene:24} {apart:9.2e}{'  more than ' + str(given.most) if apart > given.most else ''}")
            new.unlink()
        sys.stdout.flush()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
