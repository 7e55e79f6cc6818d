"""Whole runs from damaged caches: `python -m tests.robustness.damaged_caches COUNT [PROGRAM] [--seed S]`.

PROGRAM is `kernels` (a few of them), `solve` (a contact problem, by `palpo solve`) or a scene's name. A cache
of its own is filled by one run. Before each of COUNT more, some of its files are damaged: a bit flipped, a
block of zeros, or the end cut off. Each run must end well, with the numbers of the first bit for bit, and say
once of a folder that files in it are damaged, whether it met them itself or the processes did that compile
ahead of a scene; unless it needs none of them. The same seed gives the same damage.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

from palpo.physics.numerics.own import KEY

ROOT = Path(__file__).resolve().parents[2]
SHARE = 0.3
"""Of the files, damaged before a run."""
SAID = re.compile(r"(\S+) holds files that are damaged")


def spoil(path: Path, rng: np.random.Generator) -> bool:
    """Damage one file, at random; whether it was changed, as zeros may be zeros already."""
    whole = path.read_bytes()
    data, at, how = bytearray(whole), int(rng.integers(len(whole))), rng.integers(3)
    if how == 0:
        data[at] ^= 1 << int(rng.integers(8))
    elif how == 1:
        data[at : at + 512] = bytes(len(data[at : at + 512]))
    else:
        del data[at:]
    path.write_bytes(data)
    return bytes(data) != whole


def run(program: str, cache: Path, out: Path) -> tuple[NDArray[np.float64], str]:
    """What a program computed with that cache, and what it said; RuntimeError where it did not end well."""
    palpo = [sys.executable, "-m", "palpo"]
    if program == "kernels":
        command = [sys.executable, "-m", "tests.robustness.few_kernels", f"{out}.npz"]
    elif program == "solve":
        problem = ROOT / "tests/contact/problems/easy.npz"
        command = [*palpo, "solve", str(problem), "--solver", "gauss-seidel", "--out", f"{out}.npz"]
    else:
        command = [*palpo, "run", program, "--lock-step", "--headless", "--device", "mock"]
        command += ["--duration", "0.5", "--record", f"{out}.h5"]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"XDG_CACHE_HOME": str(cache)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    said = " ".join((done.stdout + done.stderr).split())
    if done.returncode != 0:
        raise RuntimeError(f"{program} ended with {done.returncode}: {said}")
    if program in ("kernels", "solve"):
        with np.load(f"{out}.npz") as kept:
            return np.concatenate(
                [np.ravel(kept[name]) for name in sorted(kept) if "history" not in name]
            ), said
    with h5py.File(f"{out}.h5") as kept:
        return np.concatenate([kept[f"servo/sent_{axis}"][:] for axis in "xyz"]), said


def tries(program: str, count: int, seed: int, room: Path) -> tuple[int, list[int]]:
    """Runs of so many with the numbers of a sound cache, and how often each said that a folder holds damage.

    room: a folder for the cache and for what is written.
    """
    cache, rng, same, said = room / "cache", np.random.default_rng(seed), 0, []
    sound, _ = run(program, cache, room / "out")
    for number in range(count):
        files = [path for path in sorted(cache.rglob("*")) if path.is_file() and path.name != KEY]
        chosen = [path for path in files if path.stat().st_size and rng.random() < SHARE]
        damaged = sum([spoil(path, rng) for path in chosen])
        found, told = run(program, cache, room / "out")
        same += np.array_equal(found, sound)
        said.append(max(Counter(SAID.findall(told)).values(), default=0))
        print(
            f"{number}: {damaged} of {len(files)} damaged, told {said[-1]} times; {same} the same", flush=True
        )
    return same, said


def main() -> None:
    """Damage and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("count", type=int)
    parser.add_argument("program", nargs="?", default="solve")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="palpo-damaged-") as room:
        same, said = tries(options.program, options.count, options.seed, Path(room))
    print(f"{same} of {options.count} runs the same, {sum(said)} told that files are damaged")
    raise SystemExit(same < options.count or max(said) > 1)


if __name__ == "__main__":
    main()
