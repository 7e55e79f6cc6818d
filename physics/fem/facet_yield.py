"""What the surface of a body of elements yields by between its nodes.

The nodes of a mesh follow a pressure as far as the elements can; what varies within one of them, the mesh
answers with no displacement at all. A half space under a pressure p cos(k x) yields by 2 (1 - nu^2) p / (E k)
(K. L. Johnson, Contact Mechanics, 1985, section 13.2), so that waves of the order of the cell's size h, the
longest that are missed, miss

    f = c h (1 - nu^2) / E        [m/Pa]

per pressure, with a number c of the element. It is found once, by what brings the force of a ball on blocks
of cells between 3 and 8 mm nearest to the converged force of another program, for Poisson's ratios from 0.30
to 0.49 (`palpo study indentation`). With h it vanishes, so that meshes converge to what they do without it.
"""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from palpo.physics.fem.material import Material


def facet_yield(
    cells: NDArray[np.integer],
    volumes: NDArray[np.float64],
    triangles: NDArray[np.integer],
    material: Material,
    missed: float,
) -> NDArray[np.float64]:
    """f of each facet (m, 3) of the boundary of cells (k, n) of those volumes [m3], shape (m,) [m/Pa].

    missed: c of the element, whose h is the cube root of the volume for hexahedra, of six times that for
    tetrahedra.
    """
    k, corners = cells.shape
    holds = sp.csr_array(
        (np.ones(cells.size, np.int8), (cells.ravel(), np.repeat(np.arange(k), corners))),
        shape=(int(cells.max()) + 1, k),
    )
    a, b, c = triangles.T
    behind = np.asarray((holds[a] * holds[b] * holds[c]).argmax(axis=1)).ravel()
    size = np.cbrt(volumes * (1.0 if corners == 8 else 6.0))
    m = material
    moduli = m.youngs_modulus * m.stiffness_of(k)[behind]
    return missed * size[behind] * (1.0 - m.poisson_ratio**2) / moduli


def mean_longest_edge(x: NDArray[np.float64], triangles: NDArray[np.integer]) -> float:
    """Longest edge [m] of a facet, in the mean of all facets (m, 3) over points x (n, 3)."""
    corners = x[triangles]
    return float(np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max(axis=1).mean())
