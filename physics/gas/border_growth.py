"""How a cavity's border moves within a step: the wall's area grows as its rim lifts.

The wall ends where the gap is the sealing distance, so that the volume above that gap, the integral of
(gap - sealing) over the wall, has no border term in its gradient, and as its second derivative

    sum over the border's crossings c of  a_c dgap_c^2,    a_c = length of border / slope of the gap,

with dgap_c by how much the two surfaces part there. The wall's area A grows by sum a_c dgap_c.
"""

import numpy as np

from palpo.physics.gas.labels import SEALED
from palpo.physics.numerics.kernels import inlined, kernel

LEVEL = 0.1
"""Least fall of the gap along an edge, over the sealing distance: a level rim does not open without end."""


@inlined
def _crosses(member, number, label, a, b):
    """Is a in the cavity, and b in the sealed ring?"""
    return member[a] == number and label[a] < SEALED and label[b] >= SEALED


@kernel
def border_growth(connectivity, member, number, label, gaps, limits, x, triangles, x_b, growth, growth_b):
    """growth (n, 3), growth_b (m, 3) [m] = dA/dx of a cavity's wall by its border; returns sum a_c [m].

    member, label (n,), gaps: of the surface's vertices x (n, 3) [m], as in `border.cut_patch`. triangles,
    x_b (m, 3): of the surface that the gaps are measured from. As forces on the pair they have no resultant
    and no moment.
    """
    growth[:] = 0.0
    growth_b[:] = 0.0
    lift = 0.0
    ends = np.zeros((2, 2), np.int64)
    part, crossing = np.zeros(2), np.zeros((2, 3))
    apart, swept = np.zeros(3), np.zeros(3)
    for t in range(connectivity.triangles.shape[0]):
        count = 0
        for j in range(3):
            a, b = connectivity.triangles[t, j], connectivity.triangles[t, (j + 1) % 3]
            if _crosses(member, number, label, b, a):
                a, b = b, a
            if count < 2 and _crosses(member, number, label, a, b) and gaps.distance[a] < np.inf:
                ends[count, 0], ends[count, 1] = a, b
                fall = gaps.distance[a] - gaps.distance[b]
                part[count] = (gaps.distance[a] - limits.sealing) / fall
                for i in range(3):
                    crossing[count, i] = x[a, i] + part[count] * (x[b, i] - x[a, i])
                count += 1
        if count < 2:
            continue
        for c in range(2):
            a, b = ends[c, 0], ends[c, 1]
            for i in range(3):
                k, m = (i + 1) % 3, (i + 2) % 3
                swept[i] = (crossing[1, k] - crossing[0, k]) * (x[b, m] - x[a, m]) - (
                    crossing[1, m] - crossing[0, m]
                ) * (x[b, k] - x[a, k])
            fall = max(gaps.distance[a] - gaps.distance[b], LEVEL * limits.sealing)
            first, second = (a, 1.0 - part[c]), (b, part[c])
            if not _foot_to(first, second, crossing[c], gaps, triangles, x_b, apart):
                continue
            grows = 0.5 * abs(swept[0] * apart[0] + swept[1] * apart[1] + swept[2] * apart[2]) / fall
            lift += grows
            for v, share in (first, second):
                for i in range(3):
                    pull = grows * share * apart[i]
                    growth[v, i] += pull
                    for j in range(3):
                        growth_b[triangles[gaps.triangle[v], j], i] -= gaps.weights[v, j] * pull
    return lift


@inlined
def _foot_to(first, second, crossing, gaps, triangles, x_b, out):
    """out (3,) = unit way to a crossing from its foot, shared by its two vertices; False where they meet."""
    for i in range(3):
        out[i] = crossing[i]
    for v, share in (first, second):
        for j in range(3):
            f, w = triangles[gaps.triangle[v], j], share * gaps.weights[v, j]
            for i in range(3):
                out[i] -= w * x_b[f, i]
    size = (out[0] ** 2 + out[1] ** 2 + out[2] ** 2) ** 0.5
    for i in range(3):
        out[i] /= size if size > 0.0 else 1.0
    return size > 0.0
