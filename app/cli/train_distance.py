"""Training of a learned distance (002, section IV-A): off line, from a solid's mesh alone, with PyTorch.

The loss compares tanh(d / scale) of network and mesh, as in 002, and adds the gradient's error, which the
mesh gives as well: the normal is what friction and forces are built on.
"""

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.config.words import Refusal
from palpo.physics.bodies.io import content_key
from palpo.physics.collision.distance_errors import DistanceErrors, distance_errors, shell_points
from palpo.physics.collision.distance_field import exact_field, learned_field, signed_distance
from palpo.physics.collision.io import find_network, write_network
from palpo.physics.collision.learned_distance import LearnedDistance, learned_distance
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.numerics.errors import InputError

Progress = Callable[[float], None]

NEAR = 0.6
"""Share of the points that lie within the band of the surface by construction; the others fill its box."""
RATE = 4e-2
"""Largest step of Adam, in the middle of a cycle that starts and ends low."""
NORMAL_WEIGHT = 3.0
"""Of the squared error of the gradient beside that of the output."""
FRESH_POINTS = 100_000
"""On which the errors are measured; the network has seen none of them."""


@dataclass(frozen=True)
class Training:
    """How long and how large. width: units of a hidden layer. points: drawn from the mesh. steps: of Adam, on
    `batch` points each. seed: of the points, the first weights and the batches."""

    width: int = 64
    points: int = 1_000_000
    steps: int = 10_000
    batch: int = 2048
    seed: int = 0


def train_distance(
    surface: SurfaceMesh,
    band: float,
    training: Training = Training(),
    progress: Progress = lambda share: None,
    source: str = "plug",
) -> tuple[LearnedDistance, DistanceErrors]:
    """A network for the distances up to `band` [m] of a solid, and its errors within half the band.

    Equal arguments give equal weights on one machine. Raises Refusal without PyTorch, and InputError as
    `exact_field` does.
    """
    torch = _torch()
    rng = np.random.default_rng(training.seed)
    exact = exact_field(surface, band, source)
    lower, upper = exact.near.solid[0] - band, exact.near.solid[1] + band
    centre, size, scale = 0.5 * (lower + upper), 0.5 * float((upper - lower).max()), 0.5 * band
    n_near = round(NEAR * training.points)
    points = np.concatenate(
        [
            shell_points(surface, band, n_near, rng),
            rng.uniform(lower, upper, (training.points - n_near, 3)),
        ]
    )
    distance, normal = signed_distance(exact, points)
    # beyond the band no distance is computed and none will be asked for
    near = normal.any(axis=1)
    # in units of the size every length that the network meets is of order one
    data = [(points[near] - centre) / size, distance[near] / size, normal[near]]
    gain = size / scale
    w1, b1, w2, b2, w3, b3 = _fit(torch, data, gain, training, progress)
    learned = learned_distance(centre, size, scale, band, w1, b1, w2, b2, gain * w3, gain * b3)
    shell = 0.5 * band
    fresh = shell_points(surface, shell, FRESH_POINTS, rng)
    return learned, distance_errors(learned_field(surface, learned, source), exact, fresh, shell)


def require_accurate(errors: DistanceErrors, tolerance: float, source: str) -> None:
    """InputError if the 99th percentile of the distance's error exceeds `tolerance` [m]."""
    if not errors.percentile_99 <= tolerance:
        raise InputError(
            f"{source}: the learned distance errs by {errors.percentile_99:.3g} m (99th percentile; largest "
            f"{errors.largest:.3g} m, RMS {errors.rms:.3g} m, normal {errors.normal_rms:.3g} degrees RMS) "
            f"within {errors.shell:.3g} m of the surface, where {tolerance:.3g} m is required; train longer "
            "or wider, or use the grid."
        )


def obtain_network(
    known: Iterable[Path],
    keep: Path | None,
    surface: SurfaceMesh,
    band: float,
    tolerance: float,
    training: Training = Training(),
    source: str = "plug",
) -> LearnedDistance:
    """The surface's network among the files `known`; without one, it is trained now and kept in `keep`.

    Raises InputError if it is not as accurate as `tolerance` [m], else as `train_distance`.
    """
    found = find_network(known, surface)
    if found is None:
        found = train_distance(surface, band, training, source=source)
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            name = f"{content_key(surface.vertices, surface.triangles)}.npz"
            write_network(keep / name, surface, *found)
    learned, errors = found
    require_accurate(errors, tolerance, source)
    return learned


def _torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ModuleNotFoundError:
        raise Refusal(
            "learning a distance needs PyTorch; install palpo[learning], or use the grid."
        ) from None


def _fit(
    torch: Any, data: list[NDArray[np.float64]], gain: float, training: Training, progress: Progress
) -> list[Any]:
    """W1, b1, W2, b2, w3, b3 for inputs x, distances and their gradients; the tanh is of `gain` distances."""
    random = torch.Generator().manual_seed(training.seed)
    x, distance, normal = (torch.tensor(array, dtype=torch.float32) for array in data)
    width = training.width

    def first(*shape: int) -> Any:
        # He's normal weights: the size of a layer's values does not depend on its width
        return (torch.randn(shape, generator=random) * (2.0 / shape[-1]) ** 0.5).requires_grad_()

    w1, w2, w3 = first(width, 3), first(width, width), first(width)
    b1, b2, b3 = (torch.zeros(n, requires_grad=True) for n in (width, width, 1))
    weights = [w1, b1, w2, b2, w3, b3]
    adam = torch.optim.Adam(weights, lr=RATE)
    cycle = torch.optim.lr_scheduler.OneCycleLR(adam, RATE, training.steps)
    for step in range(training.steps):
        batch = torch.randint(len(x), (training.batch,), generator=random)
        one = x[batch] @ w1.T + b1
        two = torch.relu(one) @ w2.T + b2
        output = torch.tanh(gain * (torch.relu(two) @ w3 + b3))
        wanted = torch.tanh(gain * distance[batch])
        slope = (((two > 0) * w3) @ w2 * (one > 0)) @ w1
        # far from the surface the output is flat, and the direction of its gradient matters as little
        weight = (1.0 - wanted**2)[:, None]
        loss = ((output - wanted) ** 2).mean()
        loss = loss + NORMAL_WEIGHT * (weight * (slope - normal[batch]) ** 2).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
        cycle.step()
        if step % 100 == 99:
            progress((step + 1) / training.steps)
    return [w.detach().numpy() for w in weights[:5]] + [b3.detach().numpy()[0]]
