"""Signed distance by a small network, trained off line from a solid's mesh alone (002, section IV-A).

Four layers of units, input and output among them, with ReLU, ReLU and tanh: on x, the position about the
solid's centre over its size,

    z = w3 . relu(W2 relu(W1 x + b1) + b2) + b3,    tanh z = tanh(d / scale)

so that the output spends its resolution near the surface. As both sides bear the tanh, the distance is
d = scale z, whose gradient is W1^T D1 W2^T D2 w3 (D: which units are active); normalised, it is the normal.
House sign: positive outside, the opposite of 002.

Points are evaluated by blocks, in single precision: rounding is 1e-7 of the solid's size, the network itself
never so good, and twice as many points fit in a register.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.kernels import fast_kernel, kernel

BLOCK = 32
"""Points evaluated together: two or four registers."""
WIDEST = 128
"""Most units of a layer."""
UNROLL = 4
"""Widths are multiples of it; `_layer` is written out for four by four."""
ROWS = WIDEST * BLOCK
"""The layers lie this far apart in one array: a constant, so that the compiler sees them apart."""


class LearnedDistance(NamedTuple):
    """A trained network; weights float32, `width` units in each hidden layer."""

    centre: NDArray[np.float64]  # (3,) [m]
    size: float  # [m]
    scale: float  # [m]
    band: float  # distance [m] up to which it was trained
    w1: NDArray[np.float32]  # (width, 3)
    b1: NDArray[np.float32]  # (width,)
    w2: NDArray[np.float32]  # (width, width)
    w2_transposed: NDArray[np.float32]  # (width, width)
    b2: NDArray[np.float32]  # (width,)
    w3: NDArray[np.float32]  # (width,)
    b3: float  # that of a float32, in the eight bytes that a handle gives a number
    zero: NDArray[np.float32]  # (width,), the bias of the way back


def learned_distance(
    centre: ArrayLike,
    size: float,
    scale: float,
    band: float,
    w1: ArrayLike,
    b1: ArrayLike,
    w2: ArrayLike,
    b2: ArrayLike,
    w3: ArrayLike,
    b3: float,
) -> LearnedDistance:
    """Model of the weights; shapes and units as in `LearnedDistance`.

    Raises InputError for shapes that do not fit each other and for weights that are not finite.
    """
    weights = [np.ascontiguousarray(w, dtype=np.float32) for w in (w1, b1, w2, b2, w3)]
    width = len(weights[0])
    shapes = [(width, 3), (width,), (width, width), (width,), (width,)]
    if [w.shape for w in weights] != shapes or width % UNROLL or not 0 < width <= WIDEST:
        raise InputError(
            f"the network's weights have shapes {[w.shape for w in weights]}, expected 3 inputs and two "
            f"equal layers of a multiple of {UNROLL} units, at most {WIDEST}."
        )
    if not all(np.isfinite(w).all() for w in (*weights, np.array(b3))):
        raise InputError("the network's weights hold NaN or infinity; train it anew.")
    place, lengths = np.array(centre, float), np.array([size, scale, band], float)
    finite = np.isfinite(place).all() and np.isfinite(lengths).all()
    if place.shape != (3,) or not finite or lengths.min() <= 0.0:
        raise InputError(
            f"the network lies at {place.tolist()} m with size, scale and band {lengths.tolist()} m; "
            "it needs a finite point and lengths above zero."
        )
    w1, b1, w2, b2, w3 = weights
    return LearnedDistance(
        place, float(size), float(scale), float(band),
        w1, b1, w2, np.ascontiguousarray(w2.T), b2, w3, float(np.float32(b3)), np.zeros(width, np.float32),
    )  # fmt: skip


def no_learned_distance() -> LearnedDistance:
    """The network of nothing, where another kind is used."""
    none = np.zeros((0, 0), np.float32)
    return LearnedDistance(
        np.zeros(3), 1.0, 1.0, 0.0, none, none.ravel(), none, none, none.ravel(), none.ravel(),
        0.0, none.ravel(),
    )  # fmt: skip


def make_layers() -> NDArray[np.float32]:
    """Scratch of one thread: first layer, second layer, way back, inputs and outputs, ROWS values each."""
    return np.zeros(4 * ROWS, np.float32)


@fast_kernel
def _layer(w, bias, s):
    """s[ROWS:] = w s[:] + bias, BLOCK values a unit.

    Four units from four inputs at a time: a value that is loaded serves four products. The loops have a
    constant bound, from which the compiler knows that no index is negative; else it would not vectorise.
    """
    for j in range(0, WIDEST, 4):
        if j >= w.shape[0]:
            break
        o = ROWS + j * BLOCK
        for p in range(BLOCK):
            s[o + p] = bias[j]
            s[o + BLOCK + p] = bias[j + 1]
            s[o + 2 * BLOCK + p] = bias[j + 2]
            s[o + 3 * BLOCK + p] = bias[j + 3]
        for k in range(0, WIDEST, 4):
            if k >= w.shape[1]:
                break
            a0, a1, a2, a3 = w[j, k], w[j, k + 1], w[j, k + 2], w[j, k + 3]
            b0, b1, b2, b3 = w[j + 1, k], w[j + 1, k + 1], w[j + 1, k + 2], w[j + 1, k + 3]
            c0, c1, c2, c3 = w[j + 2, k], w[j + 2, k + 1], w[j + 2, k + 2], w[j + 2, k + 3]
            d0, d1, d2, d3 = w[j + 3, k], w[j + 3, k + 1], w[j + 3, k + 2], w[j + 3, k + 3]
            i = k * BLOCK
            for p in range(BLOCK):
                h0, h1 = s[i + p], s[i + BLOCK + p]
                h2, h3 = s[i + 2 * BLOCK + p], s[i + 3 * BLOCK + p]
                s[o + p] += a0 * h0 + a1 * h1 + a2 * h2 + a3 * h3
                s[o + BLOCK + p] += b0 * h0 + b1 * h1 + b2 * h2 + b3 * h3
                s[o + 2 * BLOCK + p] += c0 * h0 + c1 * h1 + c2 * h2 + c3 * h3
                s[o + 3 * BLOCK + p] += d0 * h0 + d1 * h1 + d2 * h2 + d3 * h3


@fast_kernel
def _network(net, s):
    """z and its gradient by x, both in the place of the inputs: rows x, y, z and z(x) of s[3 ROWS:]."""
    zero = np.float32(0.0)
    x = 3 * ROWS
    y, z, out = x + BLOCK, x + 2 * BLOCK, x + 3 * BLOCK
    width = net.w1.shape[0]
    for j in range(WIDEST):
        if j >= width:
            break
        h, a, b, c, bias = j * BLOCK, net.w1[j, 0], net.w1[j, 1], net.w1[j, 2], net.b1[j]
        for p in range(BLOCK):
            s[h + p] = max(a * s[x + p] + b * s[y + p] + c * s[z + p] + bias, zero)
    _layer(net.w2, net.b2, s)
    for p in range(BLOCK):
        s[out + p] = net.b3
    for j in range(WIDEST):
        if j >= width:
            break
        h, w = ROWS + j * BLOCK, net.w3[j]
        for p in range(BLOCK):
            active = s[h + p] > zero
            s[out + p] += w * s[h + p] if active else zero
            s[h + p] = w if active else zero
    _layer(net.w2_transposed, net.zero, s[ROWS:])
    for p in range(BLOCK):
        s[x + p] = zero
        s[y + p] = zero
        s[z + p] = zero
    for j in range(WIDEST):
        if j >= width:
            break
        h, a, b, c = j * BLOCK, net.w1[j, 0], net.w1[j, 1], net.w1[j, 2]
        g = 2 * ROWS + h
        for p in range(BLOCK):
            back = s[g + p] if s[h + p] > zero else zero
            s[x + p] += a * back
            s[y + p] += b * back
            s[z + p] += c * back


@kernel
def learned_block(net, points, index, count, distance, normal, layers):
    """Distance [m] (n,) and normal (n, 3) of points[index[:count]], count <= BLOCK, `points` (n, 3) [m]."""
    x = 3 * ROWS
    per = 1.0 / net.size
    for k in range(count):
        for i in range(3):
            layers[x + i * BLOCK + k] = per * (points[index[k], i] - net.centre[i])
    _network(net, layers)
    for k in range(count):
        i = index[k]
        g0, g1, g2 = layers[x + k], layers[x + BLOCK + k], layers[x + 2 * BLOCK + k]
        length = (g0 * g0 + g1 * g1 + g2 * g2) ** 0.5
        scale = 1.0 / length if length > 0.0 else 0.0
        distance[i] = net.scale * layers[x + 3 * BLOCK + k]
        normal[i, 0] = scale * g0
        normal[i, 1] = scale * g1
        normal[i, 2] = scale * g2
