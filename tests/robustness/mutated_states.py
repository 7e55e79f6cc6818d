"""A program of its own: PATH COUNT restores so many mutations of a state and steps those that are taken.

Prints how many were refused, and the most memory [kB] that a run took before, and that all this took.
"""

import resource
import sys
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import numpy as np

import palpo
from palpo.app.library.model import TOLD
from palpo.app.library.seal import BODY
from tests.robustness.test_fuzz import VALUES, damaged, draws, told

WITH = 5
"""Arrays that a mutated archive keeps: those that it lacks are as the scene is built."""
FAR = 10**9
"""An index beyond everything."""


def changed(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """An array with one element far off, or of another shape, type or content."""
    if rng.random() < 0.5 and values.size and values.dtype.kind in "iuf":
        out = values.copy()
        out.flat[rng.integers(out.size)] = FAR if rng.random() < 0.5 else -FAR
        return out
    return np.asarray(VALUES[rng.integers(len(VALUES))](np.atleast_1d(values).astype(float)))


def mutated(whole: bytes, archive: dict[str, np.ndarray], rng: np.random.Generator) -> bytes:
    """The bytes changed at random; or a sound archive of other values, under the seal of the true one."""
    if rng.random() < 0.3:
        return damaged(whole, rng)
    names = [name for name in archive if name != TOLD and archive[name].dtype.names is None]
    kept = [names[k] for k in rng.integers(len(names), size=WITH)]
    out = BytesIO()
    out.write(whole[:BODY])
    with ZipFile(out, "w") as file:
        for name in (TOLD, *dict.fromkeys(kept)):
            values = changed(archive[name], rng) if name == kept[0] else archive[name]
            with file.open(f"{name}.npy", "w") as entry:
                np.save(entry, values, allow_pickle=False)
    return out.getvalue()


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    path, count = Path(sys.argv[1]), int(sys.argv[2])
    palpo.restore(path).step(100)
    before, refused = peak(), 0
    whole = path.read_bytes()
    with path.open("rb") as file:
        file.seek(BODY)
        archive = dict(np.load(file))
    spoilt = path.with_name("spoilt.palpo")
    for number, rng in draws(8, count, 1.0):
        spoilt.write_bytes(mutated(whole, archive, rng))
        with told(number):
            try:
                state = palpo.restore(spoilt)
            except palpo.Refusal:
                refused += 1
                continue
            state.step(20)
    print(refused, before, peak())


if __name__ == "__main__":
    main()
