"""Air that gets by under a rim: from what each vertex lets through to the flow between cavities.

Between two surfaces u apart, narrow against their extent, an ideal gas flows by Reynolds' equation

    div(k grad p^2) = 0,    dn/dt = (k / 2) grad p^2 . m / (R T) per metre of a line with normal m

with the sheet conductance k(u) of palpo.physics.gas.law. The gap is what stays of the distance beyond
the one that contact keeps, and in addition what roughness leaves open under the pressure of contact there
(palpo.physics.gas.roughness): a rim that lifts lets air pass with the cube of its gap, and one that
presses hard lets none.

On the surface's triangles p^2 is linear, so that vertices a and b exchange (k_ab / 2) cot / 2 for each of
their edge's triangles, with the angle that faces it; k_ab is the harmonic mean of both ends, as of two halves
in a row; an edge whose triangles together have less than nothing, in no Delaunay mesh, counts for nothing.
Vertices of a cavity, and those outside, have its pressure. The others are eliminated one by one, each
replaced by conductances between its neighbours

    G_ij += G_iv G_vj / sum_m G_vm

(the star-mesh transform of circuits), which adds positive numbers only: exact to rounding, whether a gap lets
1e10 times more through than its neighbour or nothing at all.
"""

import numpy as np

from palpo.physics.gas.flood import OUTSIDE
from palpo.physics.gas.law import sheet_conductance
from palpo.physics.gas.roughness import SealTable, contact_gap
from palpo.physics.numerics.kernels import inlined, kernel


@kernel
def contact_pressures(triangles, x, force, out):
    """out (n,) [Pa] = force (n,) [N] over a third of the triangles (m, 3) around; x (n, 3) [m]."""
    out[:] = 0.0
    for t in range(triangles.shape[0]):
        area = 0.5 * double_area(x, triangles[t, 0], triangles[t, 1], triangles[t, 2])
        for j in range(3):
            out[triangles[t, j]] += area / 3.0
    for v in range(out.size):
        out[v] = max(force[v], 0.0) / out[v] if out[v] > 0.0 else 0.0


@kernel
def sheets_of(distance, kept, pressure, walls, kind, mean_pressure, rt, out):
    """out (n,) = k [m3/(Pa s)] at vertices a distance (n,) [m] apart that press with pressure (n,) [Pa].

    kept: the distance that contact keeps [m]. walls: Walls, of which kind (n,) is below each vertex.
    mean_pressure [Pa]: of the air, which says how rarefied it is. A vertex whose distance is not known, inf
    or NaN, is no obstacle: inf.
    """
    for v in range(out.size):
        if not distance[v] < np.inf:
            out[v] = np.inf
            continue
        gap = max(distance[v] - kept, 0.0) + contact_gap(_seal_of_kind(walls, kind[v]), pressure[v])
        out[v] = sheet_conductance(gap, mean_pressure, rt) if gap > 0.0 else 0.0


@inlined
def _seal_of_kind(walls, kind):
    return SealTable(walls.first[kind], walls.step[kind], walls.gap[kind])


@kernel
def rim_conductances(triangles, x, holder, sheet, seeping, work, out):
    """out (c + 1, c + 1): G [m3/(Pa s)] of dn/dt = G (p_i^2 - p_j^2) / (R T); the outside is last.

    triangles (m, 3), x (n, 3) [m]: the surface. holder (n,): the cavity whose air is at the vertex, OUTSIDE,
    or less for one under the rim. sheet (n,): k. seeping (n,): G from each vertex through the wall below to
    the outside [m3/(Pa s)]. work: ((n + c + 1)^2,) floats, (3, n + c + 1) integers.
    """
    c = out.shape[0] - 1
    joint, near = work[1][0], work[1][2]
    count = c + 1
    for v in range(holder.size):
        joint[v] = c if holder[v] == OUTSIDE else holder[v]
        if holder[v] < OUTSIDE:
            joint[v] = count
            count += 1
    g = work[0][: count * count].reshape(count, count)
    g[:] = 0.0
    for t in range(triangles.shape[0]):
        for j in range(3):
            a, b = triangles[t, j], triangles[t, (j + 1) % 3]
            if joint[a] != joint[b]:
                through = 0.25 * _facing(x, a, b, triangles[t, (j + 2) % 3]) * _in_a_row(sheet[a], sheet[b])
                g[joint[a], joint[b]] += through
                g[joint[b], joint[a]] += through
    for i in range(count):
        for j in range(count):
            g[i, j] = max(g[i, j], 0.0)
    for v in range(holder.size):
        if joint[v] != c:
            g[joint[v], c] += seeping[v]
            g[c, joint[v]] += seeping[v]
    _eliminate(g, c + 1, work[1][1], near)
    for i in range(c + 1):
        for j in range(c + 1):
            out[i, j] = g[i, j]


@kernel
def _eliminate(g, kept, degree, near):
    """Take all joints from `kept` on out of a network of conductances g, those of fewest neighbours first."""
    count = g.shape[0]
    for i in range(count):
        degree[i] = 0
        for j in range(count):
            degree[i] += g[i, j] > 0.0
    for _ in range(kept, count):
        v, least = -1, count + 1
        for i in range(kept, count):
            if 0 <= degree[i] < least:
                v, least = i, degree[i]
        neighbours, total = 0, 0.0
        for j in range(count):
            if g[v, j] > 0.0 and degree[j] >= 0:
                near[neighbours] = j
                total += g[v, j]
                neighbours += 1
        for a in range(neighbours):
            for b in range(a + 1, neighbours):
                i, j = near[a], near[b]
                share = g[v, i] / total * g[v, j]
                if g[i, j] == 0.0 and share > 0.0:
                    degree[i] += 1
                    degree[j] += 1
                g[i, j] += share
                g[j, i] += share
        for a in range(neighbours):
            degree[near[a]] -= 1
        degree[v] = -1


@inlined
def _in_a_row(first, second):
    """The harmonic mean of two sheet conductances of 0 up to inf."""
    if first == np.inf:
        return 2.0 * second if second < np.inf else 0.0
    if second == np.inf:
        return 2.0 * first
    return 2.0 * first * second / (first + second) if first + second > 0.0 else 0.0


@inlined
def double_area(x, a, b, c):
    """Twice the area [m2] of a triangle of points x (n, 3) [m]."""
    total = 0.0
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        normal = (x[b, j] - x[a, j]) * (x[c, k] - x[a, k]) - (x[b, k] - x[a, k]) * (x[c, j] - x[a, j])
        total += normal * normal
    return total**0.5


@inlined
def _facing(x, a, b, c):
    """The cotangent of the angle at c."""
    dot, area = 0.0, double_area(x, a, b, c)
    for i in range(3):
        dot += (x[a, i] - x[c, i]) * (x[b, i] - x[c, i])
    return dot / area if area > 0.0 else 0.0
