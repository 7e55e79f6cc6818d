"""The block tridiagonal system of a chain: Cholesky factor, solution and inverse, blocks of six freedoms."""

import numpy as np

from palpo.physics.numerics.kernels import kernel


@kernel
def _factor_blocks(D, U):
    n = D.shape[0]
    for i in range(n):
        L = D[i]
        if i > 0:
            Y = U[i - 1]
            for k in range(6):
                for r in range(6):
                    for c in range(r + 1):
                        L[r, c] -= Y[k, r] * Y[k, c]
        for c in range(6):
            pivot = L[c, c]
            for k in range(c):
                pivot -= L[c, k] * L[c, k]
            if not pivot > 0.0:
                return i + 1
            pivot = np.sqrt(pivot)
            L[c, c] = pivot
            inverse = 1.0 / pivot
            for r in range(c + 1, 6):
                total = L[r, c]
                for k in range(c):
                    total -= L[r, k] * L[c, k]
                L[r, c] = total * inverse
        if i + 1 < n:
            Y = U[i]
            for r in range(6):
                for k in range(r):
                    for c in range(6):
                        Y[r, c] -= L[r, k] * Y[k, c]
                inverse = 1.0 / L[r, r]
                for c in range(6):
                    Y[r, c] *= inverse
    return 0


@kernel
def chain_factor(work):
    """Block Cholesky in place: D[i] = L_i (lower part), U[i] = L_i^-1 U_i.

    Returns 0, or 1 + the first frame whose pivot is not positive (a non-finite state).
    """
    return _factor_blocks(work.D, work.U)


@kernel
def chain_solve(work, b, out):
    """out = A_h^-1 b for b (n, 6), after chain_factor; out may be b."""
    D, U = work.D, work.U
    n = D.shape[0]
    for i in range(n):
        for r in range(6):
            total = b[i, r]
            if i > 0:
                for k in range(6):
                    total -= U[i - 1, k, r] * out[i - 1, k]
            for k in range(r):
                total -= D[i, r, k] * out[i, k]
            out[i, r] = total / D[i, r, r]
    for i in range(n - 1, -1, -1):
        for r in range(5, -1, -1):
            total = out[i, r]
            if i + 1 < n:
                for k in range(6):
                    total -= U[i, r, k] * out[i + 1, k]
            for k in range(r + 1, 6):
                total -= D[i, k, r] * out[i, k]
            out[i, r] = total / D[i, r, r]


@kernel
def chain_inverse(work, out):
    """out (6 n, 6 n) = A_h^-1 after chain_factor, by blocks from the last frame up.

    With S_i = L_i L_i^T and G_i = S_i^-1 U_i:  P_ij = -G_i P_i+1,j for j > i,  P_ii = S_i^-1 - P_i,i+1 G_i^T.
    """
    D, U = work.D, work.U
    n = D.shape[0]
    size = 6 * n
    inverse, G = work.block[0], work.block[1]
    for i in range(n - 1, -1, -1):
        L, o = D[i], 6 * i
        for c in range(6):
            inverse[c, c] = 1.0 / L[c, c]
            for r in range(c + 1, 6):
                total = 0.0
                for k in range(c, r):
                    total -= L[r, k] * inverse[k, c]
                inverse[r, c] = total / L[r, r]
        for r in range(6):
            for c in range(r + 1):
                total = 0.0
                for k in range(r, 6):
                    total += inverse[k, r] * inverse[k, c]
                out[o + r, o + c] = total
                out[o + c, o + r] = total
        if i + 1 == n:
            continue
        Y = U[i]
        for r in range(6):
            for c in range(6):
                total = 0.0
                for k in range(r, 6):
                    total += inverse[k, r] * Y[k, c]
                G[r, c] = total
        for r in range(6):
            a, b, c = G[r, 0], G[r, 1], G[r, 2]
            d, e, f = G[r, 3], G[r, 4], G[r, 5]
            for j in range(o + 6, size):
                out[o + r, j] = -(
                    a * out[o + 6, j]
                    + b * out[o + 7, j]
                    + c * out[o + 8, j]
                    + d * out[o + 9, j]
                    + e * out[o + 10, j]
                    + f * out[o + 11, j]
                )
        for r in range(6):
            for c in range(r + 1):
                total = out[o + r, o + c]
                for k in range(6):
                    total -= out[o + r, o + 6 + k] * G[c, k]
                out[o + r, o + c] = total
                out[o + c, o + r] = total
        for j in range(o + 6, size):
            for r in range(6):
                out[j, o + r] = out[o + r, j]
