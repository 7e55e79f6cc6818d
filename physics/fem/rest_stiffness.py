"""Linear elasticity at rest: the stiffness and the volume shares of a whole mesh of any element.

The element matrices are summed by nodes; `lower_blocks` hands the result to palpo.physics.fem.cholesky.
"""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from palpo.physics.fem import hex8, tet4, tet10
from palpo.physics.fem.hex8 import Integration
from palpo.physics.fem.material import Material
from palpo.physics.mesh.hex import HexMesh
from palpo.physics.mesh.quadratic import QuadraticTetMesh
from palpo.physics.mesh.tet import TetMesh, tet_volumes

SolidMesh = TetMesh | HexMesh | QuadraticTetMesh
"""A body of any element."""


def elements_of(mesh: SolidMesh) -> NDArray[np.int32]:
    """Connectivity of the mesh, shape (m, 4), (m, 8) or (m, 10)."""
    if isinstance(mesh, QuadraticTetMesh):
        return mesh.cells
    return mesh.hexes if isinstance(mesh, HexMesh) else mesh.tets


def rest_stiffness(mesh: SolidMesh, material: Material, integration: Integration = "bbar") -> sp.csr_array:
    """K [N/m] over all freedoms, shape (3 n, 3 n), symmetric; `integration` concerns hexahedra only.

    Raises InputError for an element without volume.
    """
    k = element_stiffness(mesh, elements_of(mesh), material, integration)
    return assemble(elements_of(mesh), k, len(mesh.nodes))


def element_stiffness(
    mesh: SolidMesh, elements: NDArray, material: Material, integration: Integration = "bbar"
) -> NDArray[np.float64]:
    """Matrices [N/m], shape (m, 3 c, 3 c), symmetric, of elements (m, c) of the mesh; as `rest_stiffness`."""
    lam, mu = material.lame()
    if isinstance(mesh, HexMesh):
        k = hex8.stiffness(mesh.nodes, elements, lam, mu, integration)
    elif isinstance(mesh, QuadraticTetMesh):
        k = tet10.stiffness(mesh.nodes, elements, lam, mu)
    else:
        k = tet4.stiffness(*tet4.gradients(mesh.nodes, elements), lam, mu)
    # rounding leaves the element matrices unsymmetric in the last digit
    return 0.5 * (k + k.transpose(0, 2, 1))


def assemble(elements: NDArray, k: NDArray, n_nodes: int) -> sp.csr_array:
    """Sum of element matrices k (m, 3 c, 3 c) over elements (m, c); shape (3 n, 3 n)."""
    dofs = (3 * elements[:, :, None] + np.arange(3, dtype=np.int32)).reshape(len(elements), -1)
    i, j = np.broadcast_arrays(dofs[:, :, None], dofs[:, None, :])
    size = 3 * n_nodes
    return sp.coo_array((k.ravel(), (i.ravel(), j.ravel())), shape=(size, size)).tocsr()


def node_volumes(mesh: SolidMesh) -> NDArray[np.float64]:
    """Share of each node in the volume [m3], (n,): the integral of its shape function, or as tet10's mass."""
    elements = elements_of(mesh)
    shares = corner_volumes(mesh, elements)
    volumes = np.zeros(len(mesh.nodes))
    np.add.at(volumes, elements, shares)
    return volumes


def corner_volumes(mesh: SolidMesh, elements: NDArray) -> NDArray[np.float64]:
    """Volume [m3] that each corner has of its element, shape (m, c), for elements (m, c) of the mesh."""
    if isinstance(mesh, HexMesh):
        return hex8.lumped_volumes(mesh.nodes, elements)
    if isinstance(mesh, QuadraticTetMesh):
        return tet10.lumped_volumes(mesh.nodes, elements)
    return np.repeat(tet_volumes(mesh.nodes, elements)[:, None] / 4.0, 4, axis=1)


def lower_blocks(k: sp.csr_array, free: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Rows and columns (b,) and 3x3 blocks (b, 9), rows >= columns, of k over the free nodes (f,)."""
    dofs = (3 * free[:, None] + np.arange(3)).ravel()
    blocks = sp.csr_array(k[dofs][:, dofs]).tobsr((3, 3))
    rows = np.repeat(np.arange(free.size), np.diff(blocks.indptr))
    lower = rows >= blocks.indices
    return rows[lower], blocks.indices[lower], blocks.data[lower].reshape(-1, 9)
