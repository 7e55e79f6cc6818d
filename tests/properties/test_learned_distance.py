"""The learned distance: what its kernel computes, what training reports, and what is refused."""

import re
from dataclasses import replace

import numpy as np
import pytest

from palpo.app.cli.train_distance import Training, obtain_network, require_accurate, train_distance
from palpo.physics.collision.distance_errors import DistanceErrors, distance_errors, shell_points
from palpo.physics.collision.distance_field import exact_field, learned_field, signed_distance
from palpo.physics.collision.io import RECOGNISED, SAME_MESH, find_network, read_network, write_network
from palpo.physics.collision.learned_distance import BLOCK, learned_distance
from palpo.physics.mesh.generate import box_surface
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.numerics.errors import InputError

SIZE, BAND = 0.1 * np.array([0.3, 0.2, 0.4]), 2e-3
BOX = box_surface(SIZE)
SINGLE = 1e-6  # single precision through sums of 64 terms of order one
ERRORS = DistanceErrors(1e-3, 3e-4, 2e-4, 1e-4, 1.0, 2.0)
SHORT = Training(width=8, points=4000, steps=20, batch=64)


def network(width, seed=0):
    rng = np.random.default_rng(seed)
    sizes = ((width, 3), (width,), (width, width), (width,), (width,))
    return [rng.standard_normal(s).astype(np.float32) / s[-1] ** 0.5 for s in sizes] + [rng.standard_normal()]


def model(weights):
    return learned_distance([0.001, 0.002, -0.001], 0.03, 0.004, BAND, *weights)


def forward(weights, p):
    """d = scale z in double precision, written as the formula."""
    w1, b1, w2, b2, w3, b3 = (np.asarray(w, dtype=float) for w in weights)
    x = (p - [0.001, 0.002, -0.001]) / 0.03
    return 0.004 * (np.maximum(np.maximum(x @ w1.T + b1, 0.0) @ w2.T + b2, 0.0) @ w3 + b3)


def inside(n):
    return np.random.default_rng(n).uniform(-0.5 * SIZE, 0.5 * SIZE, (n, 3))


@pytest.mark.parametrize("width", [4, 64, 128])
def test_the_kernel_computes_the_formula_and_its_gradient_in_every_width_and_number_of_points(width):
    weights = network(width)
    field = learned_field(BOX, model(weights))
    for n in (1, BLOCK, 3 * BLOCK + 5):
        p = inside(n)
        d, normal = signed_distance(field, p)
        np.testing.assert_allclose(d, forward(weights, p), atol=SINGLE * 0.004)
        h = 1e-9
        steps = h * np.eye(3)
        ahead, behind = (np.stack([forward(weights, p + s * e) for e in steps], axis=1) for s in (1, -1))
        gradient = (ahead - behind) / (2.0 * h)
        # a difference across a kink of a ReLU is no gradient; elsewhere the network is linear
        linear = np.abs(ahead + behind - 2.0 * forward(weights, p)[:, None]).max(axis=1) < 1e-6 * h
        assert linear.mean() > 0.95
        length = np.linalg.norm(gradient, axis=1)[:, None]
        np.testing.assert_allclose((length * normal)[linear], gradient[linear], atol=1e-6)


def test_the_errors_are_those_of_the_known_difference():
    # a network that is the plane y = 0.01 exactly, beside the box whose top face lies in it
    w1, w2 = np.zeros((4, 3)), np.zeros((4, 4))
    w1[0, 1], w1[1, 1], w2[0, 0], w2[1, 1] = 1.0, -1.0, 1.0, 1.0
    plane = learned_distance([0, 0.01, 0], 1.0, 1.0, BAND, w1, [0] * 4, w2, [0] * 4, [1, -1, 0, 0], 1e-4)
    rng = np.random.default_rng(0)
    p = shell_points(BOX, 1e-3, 20000, rng)
    p = p[(np.abs(p[:, 0]) < 0.012) & (np.abs(p[:, 2]) < 0.017) & (p[:, 1] > 0.0)]
    errors = distance_errors(learned_field(BOX, plane), exact_field(BOX), p, 1e-3)
    assert errors[:4] == pytest.approx((1e-3, 1e-4, 1e-4, 1e-4), rel=1e-4)
    assert errors.normal_rms == pytest.approx(0.0, abs=1e-4)


def test_points_of_the_shell_lie_within_it_and_on_both_sides():
    d, _ = signed_distance(exact_field(BOX), shell_points(BOX, 1e-3, 5000, np.random.default_rng(0)))
    assert np.abs(d).max() <= 1e-3 * (1.0 + 1e-12)
    assert 0.45 < (d > 0.0).mean() < 0.55


def test_training_learns_the_box_to_the_error_that_it_reports():
    pytest.importorskip("torch")
    learned, errors = train_distance(BOX, BAND, Training(width=32, points=40_000, steps=800, batch=1024))
    # on other points, of which the last per cent scatters most
    points = shell_points(BOX, errors.shell, 50_000, np.random.default_rng(99))
    again = distance_errors(learned_field(BOX, learned), exact_field(BOX), points, errors.shell)
    assert again.percentile_99 == pytest.approx(errors.percentile_99, rel=0.05)
    assert again.rms == pytest.approx(errors.rms, rel=0.05)
    # d = 0, which knows nothing, errs by shell / sqrt 3, and a random normal by 90 degrees
    assert errors.rms < 0.25 * errors.shell / np.sqrt(3.0)
    assert errors.normal_median < 9.0


def test_training_twice_gives_equal_weights_and_another_seed_others():
    pytest.importorskip("torch")
    one, two, other = (train_distance(BOX, BAND, replace(SHORT, seed=seed))[0] for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.w2, two.w2)
    assert one.b3 == two.b3
    assert (one.w2 != other.w2).any()


def test_a_network_is_trained_once_and_then_read(tmp_path):
    pytest.importorskip("torch")
    folder = tmp_path / "kept"
    first = obtain_network([], folder, BOX, BAND, 1.0, SHORT)
    known = list(folder.glob("*.npz"))
    second = obtain_network(known, None, BOX, BAND, 1.0, replace(SHORT, seed=5))
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(InputError, match="box: the learned distance errs"):
        obtain_network(known, None, BOX, BAND, 1e-9, SHORT, source="box")


def test_a_distance_that_is_not_good_enough_is_refused_with_its_figures():
    require_accurate(ERRORS, 2e-4, "peg")
    words = (
        "peg: the learned distance errs by 0.0002 m (99th percentile; largest 0.0003 m, RMS 0.0001 m, normal "
        "2 degrees RMS) within 0.001 m of the surface, where 0.00015 m is required"
    )
    for tolerance in (1.5e-4, np.nan):
        with pytest.raises(InputError, match=re.escape(words.replace("0.00015", f"{tolerance:.3g}"))):
            require_accurate(ERRORS, tolerance, "peg")


def test_a_file_gives_back_what_was_written_and_is_refused_for_another_mesh(tmp_path):
    path = tmp_path / "box.npz"
    learned = model(network(8))
    write_network(path, BOX, learned, ERRORS)
    read, errors = read_network(path, BOX)
    assert errors == ERRORS
    for one, other in zip(learned, read, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.portable
def test_a_network_belongs_to_every_mesh_of_its_triangles_whose_coordinates_agree_to_a_1e9th_of_its_size(
    tmp_path,
):
    """Roundings of a generator are 1e-16 of the size; a mesh that somebody edits moves by more than 1e-9."""
    path = tmp_path / "box.npz"
    write_network(path, BOX, model(network(8)), ERRORS)
    size = np.ptp(BOX.vertices, axis=0).max()
    signs = np.random.default_rng(0).choice((-1.0, 1.0), BOX.vertices.shape)
    for share in (np.finfo(float).eps, 0.99 * SAME_MESH):
        near = BOX.with_vertices(BOX.vertices + share * size * signs)
        assert find_network([tmp_path / "none.npz", path], near) is not None
    one = np.zeros(BOX.vertices.shape)
    one[3, 1] = 1.01 * SAME_MESH * size
    turned = SurfaceMesh.from_triangles(BOX.vertices, np.roll(BOX.triangles, 1, axis=1))
    for other in (BOX.with_vertices(BOX.vertices + one), turned):
        with pytest.raises(
            InputError, match=r"box\.npz: the network was trained on another mesh .* 8 vertic"
        ):
            read_network(path, other)
        assert find_network([path], other) is None
    with np.load(path) as file:
        assert str(file["recognised"]) == RECOGNISED and "1e-09" in RECOGNISED


def test_a_file_that_is_none_or_damaged_is_refused_in_one_sentence(tmp_path):
    path = tmp_path / "box.npz"
    with pytest.raises(InputError, match=r"box\.npz: not the file of a learned distance"):
        read_network(path, BOX)
    write_network(path, BOX, model(network(8)), ERRORS)
    whole = path.read_bytes()
    for content in (b"", b"PK", whole[: len(whole) // 2]):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"box\.npz: not the file of a learned distance") as caught:
            read_network(path, BOX)
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="cannot be written"):
        write_network(tmp_path / "no" / "box.npz", BOX, model(network(8)), ERRORS)


def test_weights_that_are_no_such_network_are_refused():
    weights = network(8)
    with pytest.raises(InputError, match="two equal layers of a multiple of 4 units, at most 128"):
        model([*weights[:2], weights[2][:, :4], *weights[3:]])
    with pytest.raises(InputError, match="at most 128"):
        model(network(6))
    with pytest.raises(InputError, match="at most 128"):
        model(network(256))
    weights[4][3] = np.nan
    with pytest.raises(InputError, match="NaN"):
        model(weights)
