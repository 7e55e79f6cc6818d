"""What most kinds do with a batch alike: weighted sums over points, and pairs of points in W."""

from palpo.physics.numerics.kernels import inlined, kernel


@kernel
def weighted_points(field, batch, out):
    """out (n, 3) = the batch's weighted sums of a field (s, 3) over the body's points."""
    for k in range(batch.count[0]):
        for i in range(3):
            out[k, i] = 0.0
        for c in range(3):
            weight, a = batch.weights[k, c], batch.slots[k, c]
            if weight != 0.0:
                for i in range(3):
                    out[k, i] += weight * field[a, i]


@kernel
def stand_still(batch):
    """d and v of points that do not move."""
    for k in range(batch.count[0]):
        for i in range(3):
            batch.d[k, i] = 0.0
            batch.v[k, i] = 0.0


@inlined
def add_pair(w, batch, a, b, part):
    """The block part (3, 3) = J_a C J_b^T of the points a >= b joins the lower triangle of w (rows, rows)."""
    i, j = 3 * batch.block[a], 3 * batch.block[b]
    for p in range(3):
        for q in range(3):
            w[i + p, j + q] += part[p, q]
    if i == j and a != b:  # both sides of the block are this body's
        for p in range(3):
            for q in range(3):
                w[i + p, i + q] += part[q, p]


@kernel
def add_low_rank(batch, w):
    """w += rows give^T of the batch's points, lower triangle; both (3 n, 6), give = rows C symmetric in C."""
    for a in range(batch.count[0]):
        i = 3 * batch.block[a]
        for b in range(a + 1):
            j = 3 * batch.block[b]
            for p in range(3):
                give = batch.give[3 * a + p]
                for q in range(3):
                    row, total = batch.rows[3 * b + q], 0.0
                    for c in range(6):
                        total += give[c] * row[c]
                    w[i + p, j + q] += total
                    if i == j and a != b:
                        w[i + q, j + p] += total
