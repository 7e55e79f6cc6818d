"""Clusters of contact points: what k-means promises, and what the servo needs of it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palpo.physics.collision.clusters import make_clusters, update_clusters
from palpo.physics.numerics.errors import InputError

MOST = 6
SETTLED = 1000  # sweeps: Lloyd's algorithm on these points ends long before

seeds = st.integers(0, 2**32 - 1)


def cloud(seed, n=60):
    """Points about a few places, and their distances."""
    rng = np.random.default_rng(seed)
    places = rng.uniform(-1.0, 1.0, (4, 3))
    return places[rng.integers(4, size=n)] + 0.2 * rng.standard_normal((n, 3)), rng.uniform(-1.0, 0.0, n)


def clustered(points, distance, sweeps=SETTLED, state=None):
    state = make_clusters(MOST, 200) if state is None else state
    update_clusters(state, points, distance, len(points), sweeps)
    return state


def objective(state, points):
    """Sum of the squared distances to the centres that the points were given to."""
    return float(((points - state.centre[state.label[: len(points)]]) ** 2).sum())


def partition(state, n):
    return {frozenset(np.flatnonzero(state.label[:n] == c)) for c in range(state.count[0]["found"])}


@settings(max_examples=60)
@given(seeds)
def test_no_sweep_increases_the_objective(seed):
    points, distance = cloud(seed)
    state, before = make_clusters(MOST, 200), np.inf
    for _ in range(12):
        clustered(points, distance, 1, state)
        after = objective(state, points)
        assert after <= before * (1.0 + 1e-12)  # rounding of a sum of 60 squares
        before = after


@settings(max_examples=60)
@given(seeds)
def test_settled_clusters_are_fixed_each_point_at_its_nearest_centre_each_centre_the_mean(seed):
    points, distance = cloud(seed)
    state = clustered(points, distance)
    m = state.count[0]["found"]
    offsets = np.linalg.norm(points[:, None] - state.centre[:m], axis=2)
    np.testing.assert_array_equal(offsets.argmin(axis=1), state.label[: len(points)])
    means = [points[state.label[: len(points)] == c].mean(axis=0) for c in range(m)]
    np.testing.assert_allclose(state.centre[:m], means, atol=1e-14)


@settings(max_examples=60)
@given(seeds)
def test_the_deepest_point_stands_for_its_cluster(seed):
    points, distance = cloud(seed)
    state = clustered(points, distance, sweeps=2)
    for c in range(state.count[0]["found"]):
        members = np.flatnonzero(state.label[: len(points)] == c)
        assert members.size == state.members[c] > 0
        assert state.deepest[c] == members[distance[members].argmin()]
    assert distance.argmin() in state.deepest


@settings(max_examples=60)
@given(seeds)
def test_the_order_of_the_points_does_not_matter(seed):
    # where no two distances are equal; sums of other orders round differently, which moves no point here
    points, distance = cloud(seed)
    order = np.random.default_rng(seed + 1).permutation(len(points))
    one, other = clustered(points, distance), clustered(points[order], distance[order])
    n = len(points)
    assert partition(one, n) == {frozenset(order[list(part)]) for part in partition(other, n)}
    np.testing.assert_array_equal(np.sort(one.deepest), np.sort(order[other.deepest]))


def test_equal_histories_give_equal_bits():
    runs = []
    for _ in range(2):
        state = make_clusters(MOST, 200)
        for seed in range(5):
            clustered(*cloud(seed, 40 + seed), sweeps=3, state=state)
        runs.append(state)
    for one, other in zip(*runs, strict=True):
        np.testing.assert_array_equal(one, other)


def test_clusters_that_move_little_settle_in_one_sweep_and_keep_their_numbers():
    points, distance = cloud(5)
    state = clustered(points, distance)
    cold = state.count[0]["sweeps"]
    labels = state.label.copy()
    # by less than half of what would bring a point to another centre
    offsets = np.sort(
        np.linalg.norm(points[:, None] - state.centre[: state.count[0]["found"]], axis=2), axis=1
    )
    shift = 0.2 * (offsets[:, 1] - offsets[:, 0]).min()
    clustered(points + np.array([shift, 0.0, 0.0]), distance, state=state)
    assert state.count[0]["sweeps"] == 1 < cold
    np.testing.assert_array_equal(state.label, labels)


def test_seeding_is_within_twice_the_best_radius():
    # Gonzalez 1985; places 1 apart and points within 0.1 of them: one centre in each place
    rng = np.random.default_rng(0)
    places = np.indices((3, 2, 1)).reshape(3, -1).T.astype(float)
    points = np.repeat(places, 8, axis=0) + rng.uniform(-0.05, 0.05, (48, 3))
    state = clustered(points, rng.uniform(-1.0, 0.0, 48), sweeps=0)
    assert partition(state, 48) == {frozenset(range(8 * k, 8 * k + 8)) for k in range(MOST)}


def test_as_many_points_as_clusters_stand_for_themselves_and_equal_points_for_each_other():
    points, distance = cloud(1, MOST)
    state = clustered(points, distance)
    assert sorted(state.deepest) == list(range(MOST))
    state = clustered(np.repeat(points[:2], 10, axis=0), np.zeros(20))
    assert state.count[0]["found"] == 2
    np.testing.assert_array_equal(state.deepest[:2], [0, 10])


def test_clusters_that_lost_their_points_start_elsewhere_and_none_remain_of_no_points():
    points, distance = cloud(1)
    state = clustered(points, distance)
    away = points + np.array([50.0, 0.0, 0.0])
    clustered(away, distance, state=state)
    clustered(away, distance, state=state)  # the one old centre that took all points is replaced in turn
    assert state.count[0]["found"] == MOST
    assert (state.members > 0).all()
    assert update_clusters(state, points, distance, 0, SETTLED) == 0
    assert objective(clustered(points, distance, state=state), points) == objective(
        clustered(points, distance), points
    )


def test_no_cluster_is_refused():
    with pytest.raises(InputError, match="0 clusters of up to 5 contact points"):
        make_clusters(0, 5)
