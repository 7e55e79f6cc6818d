"""Walls and partners of known cavities: bowls of revolution, grounds, a block with a tunnel."""

import numpy as np

from palpo.physics.collision.nearest import fit, triangle_tree
from palpo.physics.gas.flood import connectivity
from palpo.physics.gas.pairing import add_wall, clear_walls, make_pairing, pair_walls
from palpo.physics.gas.patch import Patch, add_loop, add_triangle, add_vertex, make_patch
from palpo.physics.mesh.surface import SurfaceMesh


def bowl(profile, n_around, centre=(0.0, 0.0)):
    """A sheet of revolution that faces down; profile (k, 2): radius, height, from the axis or a ring on."""
    angle = 2 * np.pi * np.arange(n_around) / n_around
    counts = [1 if r == 0.0 else n_around for r, _ in profile]
    circle = np.column_stack([np.cos(angle), 0 * angle, np.sin(angle)])
    axis = np.array([centre[0], 0.0, centre[1]])
    rings = [
        (axis + r * circle + [0.0, y, 0.0])[:count] for (r, y), count in zip(profile, counts, strict=True)
    ]
    start, (i, j) = np.cumsum([0, *counts]), (np.arange(n_around), (np.arange(n_around) + 1) % n_around)
    triangles = []
    for a, b, count in zip(start, start[1:], counts[:-1], strict=False):
        triangles.append(np.column_stack([a + i % count, b + i, b + j]))
        if count > 1:
            triangles.append(np.column_stack([a + i, b + j, a + j]))
    return SurfaceMesh.from_triangles(np.concatenate(rings), np.concatenate(triangles))


def bowl_volume(profile, n_around, ground=0.0):
    """Volume [m3] between a bowl and a plane below it: frusta, since its rings are regular polygons."""
    r, y = np.array(profile).T
    frusta = (y[:-1] - y[1:]) * (r[:-1] ** 2 + r[:-1] * r[1:] + r[1:] ** 2) / 3
    slabs = r[-1] ** 2 * (y[-1] - ground) - r[0] ** 2 * (y[0] - ground)
    return 0.5 * n_around * np.sin(2 * np.pi / n_around) * (frusta.sum() + slabs)


def quarter(radius, n, lift=0.0):
    """The meridian of a half sphere from the pole to the rim, `lift` above y = 0."""
    angle = 0.5 * np.pi * np.arange(n + 1) / n
    return np.column_stack([radius * np.sin(angle), radius * np.cos(angle) + lift])


def wall(surface: SurfaceMesh) -> Patch:
    """All of an open surface as a patch with its border loops."""
    n = len(surface.vertices)
    patch = make_patch(n, len(surface.triangles), n, n)
    for v in range(n):
        add_vertex(patch, v)
    for triangle in surface.triangles:
        add_triangle(patch, *triangle)
    following = dict(surface.edges[surface.edge_triangles[:, 1] < 0].tolist())
    while following:
        loop = [next(iter(following))]
        while (v := following.pop(loop[-1])) != loop[0]:
            loop.append(v)
        add_loop(patch, np.array(loop), len(loop))
    return patch


def ground(n, height=None, size=0.06, seed=0):
    """A grid of n x n cells over |x|, |z| <= size, its inner vertices shaken; height(x, z) [m], 0 without."""
    rng = np.random.default_rng(seed)
    side = size * np.linspace(-1.0, 1.0, n + 1)
    x, z = (grid.ravel() for grid in np.meshgrid(side, side, indexing="ij"))
    for place, other in ((x, z), (z, x)):
        inner = (np.abs(place) < 0.999 * size) & (np.abs(other) < 0.999 * size)
        place += np.where(inner, rng.uniform(-0.5, 0.5, x.size) * size / n, 0.0)
    y = np.zeros_like(x) if height is None else height(x, z)
    a = (np.arange(n)[:, None] * (n + 1) + np.arange(n)).ravel()
    lower, upper = [a, a + 1, a + n + 1], [a + 1, a + n + 2, a + n + 1]
    return SurfaceMesh.from_triangles(
        np.column_stack([x, y, z]), np.concatenate([np.column_stack(lower), np.column_stack(upper)])
    )


def block_with_tunnel(size=0.005):
    """A block of 9 x 4 x 9 cubes of that size, its top at y = 0, and a tunnel between two mouths in its top.

    Also the x of both mouths' centres and the tunnel's volume.
    """
    solid = np.ones((9, 4, 9), bool)
    solid[2, 1:, 4] = solid[6, 1:, 4] = solid[2:7, 1, 4] = False
    padded, quads = np.pad(solid, 1), []
    for axis in range(3):
        u, v = (np.eye(3, dtype=int)[(axis + k) % 3] for k in (1, 2))
        for cell in np.argwhere(padded):
            for side in (0, 1):
                step = np.eye(3, dtype=int)[axis]
                if not padded[tuple(cell + (2 * side - 1) * step)]:
                    corner = cell + side * step
                    quad = [corner, corner + u, corner + u + v, corner + v]
                    quads.append(quad if side else quad[::-1])
    corners, index = np.unique(np.array(quads).reshape(-1, 3), axis=0, return_inverse=True)
    index = index.reshape(-1, 4)
    vertices = size * (corners - 1 - np.array([4.5, 4.0, 4.5]))
    surface = SurfaceMesh.from_triangles(vertices, np.concatenate([index[:, :3], index[:, [0, 2, 3]]]))
    return surface, (-2 * size, 2 * size), (~solid).sum() * size**3


class Pairer:
    """Finds the cavities between two bodies, step by step, in arrays made once.

    walls: most inner surfaces of body A. The bodies' surfaces may have moved when it is asked.
    """

    def __init__(self, surface_a, surface_b, walls=16):
        self.surface = connectivity(surface_b)
        self.boxes = triangle_tree(surface_b.vertices, surface_b.triangles)
        self.pairing, self.cavities = make_pairing(connectivity(surface_a), self.surface, walls)

    def pair(self, patches, x_a, x_b):
        """The cavities between walls on A and the surface of B, at positions x_a, x_b (n, 3) [m].

        What became of each wall is in pairing.outcome and pairing.cavity, in the order of the patches.
        """
        clear_walls(self.pairing)
        for patch in patches:
            add_wall(self.pairing, patch)
        # one memory layout, one compiled kernel
        x_a, x_b = np.ascontiguousarray(x_a), np.ascontiguousarray(x_b)
        fit(self.boxes, x_b)
        pair_walls(self.pairing, self.surface, self.boxes, x_a, x_b, self.cavities)
        return self.cavities


def wall_areas(patch, points, n):
    """Outward area vectors (n, 3) [m2] of a patch, shared out over the n vertices of its surface."""
    triangles, out = patch.triangles[: patch.size[0].triangles], np.zeros((n, 3))
    a, b, c = (points[triangles[:, k]] for k in range(3))
    share = np.cross(b - a, c - a) / 6.0
    parts = patch.weights[triangles][..., None] * share[:, None, None, :]
    np.add.at(out, patch.parents[triangles], parts)
    return out
