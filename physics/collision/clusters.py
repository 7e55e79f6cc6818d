"""k-means of contact points, and the deepest point of each cluster (002, section IV-A).

Lloyd's algorithm from the centres of the last tick; where there are too few of them, centres are added at the
points farthest from all (Gonzalez, Clustering to minimize the maximum intercluster distance, 1985), the first
at the deepest point. No step increases the objective, the sum of the squared distances of the points to their
centres. There is no chance in it: equal states and points give equal clusters, and the order of the points
matters only where distances are equal.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.kernels import inlined, kernel

COUNT = np.dtype([("found", np.int64), ("sweeps", np.int64)])
"""Clusters, and the sweeps of the last update."""


class Clusters(NamedTuple):
    """The clusters of one tick, and what the next one starts from."""

    centre: NDArray[np.float64]  # (most, 3) [m]
    # shadows tuple.count, which nobody asks of a state
    count: NDArray[np.void]  # type: ignore[assignment]  # (1,) of COUNT
    label: NDArray[np.int64]  # (capacity,) cluster of each point
    offset2: NDArray[np.float64]  # (capacity,) squared distance of each point to its centre [m2]
    deepest: NDArray[np.int64]  # (most,) the point that stands for each cluster
    members: NDArray[np.int64]  # (most,) points of each cluster


def make_clusters(most: int, capacity: int) -> Clusters:
    """State for at most `most` clusters of at most `capacity` points; InputError unless both are positive."""
    if most < 1 or capacity < 1:
        raise InputError(f"{most} clusters of up to {capacity} contact points: both must be at least 1.")
    return Clusters(
        np.zeros((most, 3)), np.zeros(1, COUNT), np.zeros(capacity, np.int64), np.zeros(capacity),
        np.zeros(most, np.int64), np.zeros(most, np.int64),
    )  # fmt: skip


@inlined
def _from_centre(clusters, points, i, c):
    """Squared distance [m2] of a point to a centre."""
    d0 = points[i, 0] - clusters.centre[c, 0]
    d1 = points[i, 1] - clusters.centre[c, 1]
    d2 = points[i, 2] - clusters.centre[c, 2]
    return d0 * d0 + d1 * d1 + d2 * d2


@inlined
def _assign(clusters, points, n):
    """Give each point to its nearest centre, of equal ones the first; whether any changed its cluster."""
    changed = False
    for i in range(n):
        best, nearest = 1e300, 0
        for c in range(clusters.count[0].found):
            d2 = _from_centre(clusters, points, i, c)
            if d2 < best:
                best, nearest = d2, c
        changed |= clusters.label[i] != nearest
        clusters.label[i] = nearest
        clusters.offset2[i] = best
    return changed


@inlined
def _drop_empty(clusters, n):
    """Count the members, and forget the clusters without any; the others keep their order."""
    members, number = clusters.members, clusters.deepest
    members[:] = 0
    for i in range(n):
        members[clusters.label[i]] += 1
    kept = 0
    for c in range(clusters.count[0].found):
        if members[c] == 0:
            continue
        number[c] = kept
        members[kept] = members[c]
        for j in range(3):
            clusters.centre[kept, j] = clusters.centre[c, j]
        kept += 1
    for i in range(n):
        clusters.label[i] = number[clusters.label[i]]
    clusters.count[0].found = kept


@inlined
def _add_farthest(clusters, points, n):
    """Put centres on the points farthest from all, until there are enough or every point lies on one."""
    while clusters.count[0].found < clusters.centre.shape[0]:
        far = 0
        for i in range(1, n):
            if clusters.offset2[i] > clusters.offset2[far]:
                far = i
        if clusters.offset2[far] == 0.0:
            break
        c = clusters.count[0].found
        clusters.count[0].found += 1
        for j in range(3):
            clusters.centre[c, j] = points[far, j]
        for i in range(n):
            d2 = _from_centre(clusters, points, i, c)
            if d2 < clusters.offset2[i]:
                clusters.offset2[i] = d2
                clusters.label[i] = c


@inlined
def _move_to_means(clusters, points, n):
    """Each centre to the mean of its points; one without any stays."""
    clusters.members[:] = 0
    for i in range(n):
        clusters.members[clusters.label[i]] += 1
    for c in range(clusters.count[0].found):
        if clusters.members[c]:
            clusters.centre[c] = 0.0
    for i in range(n):
        c = clusters.label[i]
        for j in range(3):
            clusters.centre[c, j] += points[i, j] / clusters.members[c]


@kernel
def update_clusters(clusters, points, distance, n, sweeps):
    """Clusters of the first n points, (n, 3) [m], of signed distances (n,) [m]; returns how many there are.

    At most `sweeps` sweeps of Lloyd's algorithm; what has not settled by then goes on in the next tick, from
    the centres reached. Of each cluster `clusters.deepest` holds the point with the least distance.
    """
    clusters.count[0].sweeps = 0
    if n == 0:
        clusters.count[0].found = 0
        return 0
    if clusters.count[0].found == 0:
        first = 0
        for i in range(1, n):
            if distance[i] < distance[first]:
                first = i
        clusters.count[0].found = 1
        for j in range(3):
            clusters.centre[0, j] = points[first, j]
    _assign(clusters, points, n)
    _drop_empty(clusters, n)
    _add_farthest(clusters, points, n)
    changed = True
    while changed and clusters.count[0].sweeps < sweeps:
        clusters.count[0].sweeps += 1
        _move_to_means(clusters, points, n)
        changed = _assign(clusters, points, n)
    _drop_empty(clusters, n)
    clusters.deepest[:] = -1
    for i in range(n):
        c = clusters.label[i]
        if clusters.deepest[c] < 0 or distance[i] < distance[clusters.deepest[c]]:
            clusters.deepest[c] = i
    return clusters.count[0].found
