"""Closest points of two simplices: point-triangle and segment-segment.

Source: C. Ericson, Real-Time Collision Detection (2005), sections 5.1.5 and 5.1.9. Both kernels say
which *feature* of the simplex carries the closest point, because a contact is kept only where that
feature is a local minimum of the distance (`palpo.physics.collision.proximity`).
"""

from palpo.physics.numerics.kernels import inlined, kernel

FACE, EDGE_AB, EDGE_BC, EDGE_CA, VERTEX_A, VERTEX_B, VERTEX_C = 0, 1, 2, 3, 4, 5, 6
"""Feature codes of a triangle (a, b, c)."""

INTERIOR, AT_START, AT_END = 0, 1, 2
"""Feature codes of a segment."""


FLAT = 1e-24
"""Squared sine of an angle below which a triangle counts as having no area."""


@inlined
def _clamp01(t):
    return 0.0 if t < 0.0 else (1.0 if t > 1.0 else t)


@inlined
def _edge_weights(weights, i, j, t):
    weights[0] = 0.0
    weights[1] = 0.0
    weights[2] = 0.0
    weights[i] = 1.0 - t
    weights[j] += t


@kernel
def _nearest_edge(p, a, b, c, weights):
    """Closest point of a triangle without area: the best of its three edges."""
    feature, best = VERTEX_A, 1e300
    for k in range(3):
        u = a if k == 0 else (b if k == 1 else c)
        w = b if k == 0 else (c if k == 1 else a)
        length2, along = 0.0, 0.0
        for i in range(3):
            length2 += (w[i] - u[i]) ** 2
            along += (w[i] - u[i]) * (p[i] - u[i])
        t = _clamp01(along / length2) if length2 > 0.0 else 0.0
        d2 = 0.0
        for i in range(3):
            d2 += (p[i] - u[i] - t * (w[i] - u[i])) ** 2
        if d2 < best:
            best = d2
            _edge_weights(weights, k, (k + 1) % 3, t)
            feature = EDGE_AB + k if 0.0 < t < 1.0 else VERTEX_A + (k if t <= 0.0 else (k + 1) % 3)
    return feature


@kernel
def point_triangle(p, a, b, c, weights):
    """Closest point of the triangle (a, b, c) to the point p.

    Writes its barycentric weights, shape (3,), and returns the feature code that carries it. A triangle
    without area is its edges.
    """
    ab0, ab1, ab2 = b[0] - a[0], b[1] - a[1], b[2] - a[2]
    ac0, ac1, ac2 = c[0] - a[0], c[1] - a[1], c[2] - a[2]
    ap0, ap1, ap2 = p[0] - a[0], p[1] - a[1], p[2] - a[2]
    n0, n1, n2 = ab1 * ac2 - ab2 * ac1, ab2 * ac0 - ab0 * ac2, ab0 * ac1 - ab1 * ac0
    sides = (ab0 * ab0 + ab1 * ab1 + ab2 * ab2) * (ac0 * ac0 + ac1 * ac1 + ac2 * ac2)
    if n0 * n0 + n1 * n1 + n2 * n2 <= FLAT * sides:
        return _nearest_edge(p, a, b, c, weights)
    d1 = ab0 * ap0 + ab1 * ap1 + ab2 * ap2
    d2 = ac0 * ap0 + ac1 * ap1 + ac2 * ap2
    if d1 <= 0.0 and d2 <= 0.0:
        _edge_weights(weights, 0, 1, 0.0)
        return VERTEX_A
    bp0, bp1, bp2 = p[0] - b[0], p[1] - b[1], p[2] - b[2]
    d3 = ab0 * bp0 + ab1 * bp1 + ab2 * bp2
    d4 = ac0 * bp0 + ac1 * bp1 + ac2 * bp2
    if d3 >= 0.0 and d4 <= d3:
        _edge_weights(weights, 0, 1, 1.0)
        return VERTEX_B
    vc = d1 * d4 - d3 * d2
    if vc <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        _edge_weights(weights, 0, 1, d1 / (d1 - d3))
        return EDGE_AB
    cp0, cp1, cp2 = p[0] - c[0], p[1] - c[1], p[2] - c[2]
    d5 = ab0 * cp0 + ab1 * cp1 + ab2 * cp2
    d6 = ac0 * cp0 + ac1 * cp1 + ac2 * cp2
    if d6 >= 0.0 and d5 <= d6:
        _edge_weights(weights, 0, 2, 1.0)
        return VERTEX_C
    vb = d5 * d2 - d1 * d6
    if vb <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        _edge_weights(weights, 0, 2, d2 / (d2 - d6))
        return EDGE_CA
    va = d3 * d6 - d5 * d4
    e1, e2 = d4 - d3, d5 - d6
    if va <= 0.0 and e1 >= 0.0 and e2 >= 0.0:
        _edge_weights(weights, 1, 2, e1 / (e1 + e2))
        return EDGE_BC
    denominator = 1.0 / (va + vb + vc)
    weights[1] = vb * denominator
    weights[2] = vc * denominator
    weights[0] = 1.0 - weights[1] - weights[2]
    return FACE


@inlined
def vector(array, k):
    """Row k of an array (n, 3) as a tuple, for which nothing counts references: queries of tuples take a
    quarter of the time that they take of slices."""
    return array[k, 0], array[k, 1], array[k, 2]


@inlined
def to_triangle(p, x, triangles, t, weights):
    """(squared distance [m2] of p from triangle t, feature code of its closest point, its offset to p [m]).

    p: a tuple. x (n, 3) [m], triangles (m, 3) of their numbers. Writes the closest point's weights (3,).
    """
    a, b, c = vector(x, triangles[t, 0]), vector(x, triangles[t, 1]), vector(x, triangles[t, 2])
    feature = point_triangle(p, a, b, c, weights)
    o0 = p[0] - weights[0] * a[0] - weights[1] * b[0] - weights[2] * c[0]
    o1 = p[1] - weights[0] * a[1] - weights[1] * b[1] - weights[2] * c[1]
    o2 = p[2] - weights[0] * a[2] - weights[1] * b[2] - weights[2] * c[2]
    return o0 * o0 + o1 * o1 + o2 * o2, feature, (o0, o1, o2)


@inlined
def _end(t):
    return AT_START if t <= 0.0 else (AT_END if t >= 1.0 else INTERIOR)


@kernel
def segment_segment(p0, p1, q0, q1, st):
    """Closest points p0 + s (p1 - p0) and q0 + t (q1 - q0) of two segments.

    Writes st = (s, t) in [0, 1] and returns the two feature codes. Of the equally close pairs of parallel
    segments, it takes the one nearest to the first segment's start.
    """
    d10, d11, d12 = p1[0] - p0[0], p1[1] - p0[1], p1[2] - p0[2]
    d20, d21, d22 = q1[0] - q0[0], q1[1] - q0[1], q1[2] - q0[2]
    r0, r1, r2 = p0[0] - q0[0], p0[1] - q0[1], p0[2] - q0[2]
    a = d10 * d10 + d11 * d11 + d12 * d12
    e = d20 * d20 + d21 * d21 + d22 * d22
    f = d20 * r0 + d21 * r1 + d22 * r2
    if a == 0.0 and e == 0.0:
        s, t = 0.0, 0.0
    elif a == 0.0:
        s, t = 0.0, _clamp01(f / e)
    else:
        c = d10 * r0 + d11 * r1 + d12 * r2
        if e == 0.0:
            s, t = _clamp01(-c / a), 0.0
        else:
            b = d10 * d20 + d11 * d21 + d12 * d22
            denominator = a * e - b * b
            s = _clamp01((b * f - c * e) / denominator) if denominator > 1e-12 * a * e else 0.0
            t = (b * s + f) / e
            if t < 0.0:
                t, s = 0.0, _clamp01(-c / a)
            elif t > 1.0:
                t, s = 1.0, _clamp01((b - c) / a)
    st[0] = s
    st[1] = t
    return _end(s), _end(t)


@inlined
def triangle_normal(a, b, c, n):
    """n = unit normal of the triangle by the right-hand rule; zero for a degenerate one."""
    u0, u1, u2 = b[0] - a[0], b[1] - a[1], b[2] - a[2]
    w0, w1, w2 = c[0] - a[0], c[1] - a[1], c[2] - a[2]
    n[0] = u1 * w2 - u2 * w1
    n[1] = u2 * w0 - u0 * w2
    n[2] = u0 * w1 - u1 * w0
    length = (n[0] * n[0] + n[1] * n[1] + n[2] * n[2]) ** 0.5
    scale = 1.0 / length if length > 0.0 else 0.0
    for i in range(3):
        n[i] *= scale


@inlined
def leads_out(x, edges, opposite, e, d, sense, slack):
    """Whether sense times a unit vector d (3,) stands in the normal cone of an edge: leads out of its faces.

    x (n, 3) [m]; edges (k, 2); opposite (k, 2): third points of their faces, -1 for none. slack: sine of the
    angle by which it may lead into a face; by minus slack it must lead out. An edge without length has none.
    """
    a, b = edges[e, 0], edges[e, 1]
    u0, u1, u2 = x[b, 0] - x[a, 0], x[b, 1] - x[a, 1], x[b, 2] - x[a, 2]
    uu = u0 * u0 + u1 * u1 + u2 * u2
    if uu == 0.0:
        return False
    for k in range(2):
        o = opposite[e, k]
        if o < 0:
            continue
        w0, w1, w2 = x[o, 0] - x[a, 0], x[o, 1] - x[a, 1], x[o, 2] - x[a, 2]
        f = (w0 * u0 + w1 * u1 + w2 * u2) / uu
        w0, w1, w2 = w0 - f * u0, w1 - f * u1, w2 - f * u2
        length = (w0 * w0 + w1 * w1 + w2 * w2) ** 0.5
        if sense * (d[0] * w0 + d[1] * w1 + d[2] * w2) > slack * length:
            return False
    return True
