"""Linear elasticity at rest: the stiffness and the volume shares of a whole mesh of any element.

The element matrices are summed by nodes; `lower_blocks` hands the result to palpo.physics.fem.cholesky.
"""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from palpo.physics.fem.elements import SolidMesh, element_of
from palpo.physics.fem.material import Material


def rest_stiffness(mesh: SolidMesh, material: Material, elements: str | None = None) -> sp.csr_array:
    """K [N/m] over all freedoms, shape (3 n, 3 n), symmetric; elements: their name, where not the usual ones.

    Raises InputError for an element without volume, and as `element_of`.
    """
    return assemble(mesh.cells, element_stiffness(mesh, mesh.cells, material, elements), len(mesh.nodes))


def element_stiffness(
    mesh: SolidMesh, cells: NDArray, material: Material, elements: str | None = None
) -> NDArray[np.float64]:
    """Matrices [N/m], shape (m, 3 c, 3 c), symmetric, of some cells (m, c) of a mesh; as `rest_stiffness`."""
    k = element_of(mesh, elements).stiffness(mesh.nodes, cells, *material.lame())
    # rounding leaves the element matrices unsymmetric in the last digit
    return 0.5 * (k + k.transpose(0, 2, 1))


def assemble(elements: NDArray, k: NDArray, n_nodes: int) -> sp.csr_array:
    """Sum of element matrices k (m, 3 c, 3 c) over elements (m, c); shape (3 n, 3 n)."""
    dofs = (3 * elements[:, :, None] + np.arange(3, dtype=np.int32)).reshape(len(elements), -1)
    i, j = np.broadcast_arrays(dofs[:, :, None], dofs[:, None, :])
    size = 3 * n_nodes
    return sp.coo_array((k.ravel(), (i.ravel(), j.ravel())), shape=(size, size)).tocsr()


def node_volumes(mesh: SolidMesh) -> NDArray[np.float64]:
    """Share of each node in the volume [m3], (n,), as a lumped mass has it."""
    volumes = np.zeros(len(mesh.nodes))
    np.add.at(volumes, mesh.cells, element_of(mesh).volumes(mesh.nodes, mesh.cells))
    return volumes


def lower_blocks(k: sp.csr_array, free: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Rows and columns (b,) and 3x3 blocks (b, 9), rows >= columns, of k over the free nodes (f,)."""
    dofs = (3 * free[:, None] + np.arange(3)).ravel()
    blocks = sp.csr_array(k[dofs][:, dofs]).tobsr((3, 3))
    rows = np.repeat(np.arange(free.size), np.diff(blocks.indptr))
    lower = rows >= blocks.indices
    return rows[lower], blocks.indices[lower], blocks.data[lower].reshape(-1, 9)
