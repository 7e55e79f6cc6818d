"""A quasi-static linear body solved by conjugate gradients: a displacement solver of another kind.

Block-Jacobi preconditioner, started from the last answer (Saad, Iterative Methods for Sparse Linear Systems,
algorithm 9.1). It solves the whole body whatever is asked for, as the static solver of section 4.3 of 001,
N. Talbi's thesis.
"""

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from palpo.physics.bodies.clamped import ClampedBody, usual_elements
from palpo.physics.fem.material import Material
from palpo.physics.fem.rest_stiffness import rest_stiffness
from palpo.physics.mesh.hex import HexMesh
from palpo.physics.mesh.tet import TetMesh
from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.kernels import fast_kernel


class ConjugateGradientBody(ClampedBody):
    """Linear elasticity solved by iteration; a DisplacementSolver.

    elements: as of a QuasistaticBody. tolerance: |residual| over |load| at which a solve ends. u is kept from
    call to call and is where the next one starts. iterations, residual, converged: of the last solve.
    Raises InputError as `ClampedBody`, and for a body without a free node.
    """

    def __init__(
        self,
        name: str,
        mesh: TetMesh | HexMesh,
        material: Material,
        clamped: ArrayLike,
        gravity: ArrayLike = (0.0, -9.81, 0.0),
        elements: str | None = None,
        tolerance: float = 1e-8,
        max_iterations: int = 10000,
    ) -> None:
        super().__init__(name, mesh, material, clamped, gravity)
        if self.rigid:
            raise InputError(f"body {name!r} clamps all of its nodes but needs a free one to deform.")
        self.tolerance, self.max_iterations = tolerance, max_iterations
        self.iterations, self.residual, self.converged = 0, 0.0, True
        dofs = (3 * self.free[:, None] + np.arange(3)).ravel()
        k = sp.csr_array(
            rest_stiffness(mesh, material, elements or usual_elements(mesh))[dofs][:, dofs]
        ).tobsr((3, 3))
        rows = np.repeat(np.arange(self.free.size), np.diff(k.indptr))
        self._matrix = k.indptr, k.indices, np.ascontiguousarray(k.data)
        self._inverse_diagonal = np.linalg.inv(k.data[rows == k.indices])
        self._x = np.zeros((self.free.size, 3))
        self._scratch = np.empty((4, self.free.size, 3))

    def displacements(self, nodes: ArrayLike, forces: ArrayLike, at: ArrayLike) -> NDArray:
        """See DisplacementSolver."""
        load = np.ascontiguousarray(self.load(nodes, forces)[self.free])
        self.iterations, self.residual = conjugate_gradient(
            *self._matrix, self._inverse_diagonal, load, self._x, self.tolerance, self.max_iterations,
            self._scratch,
        )  # fmt: skip
        self.converged = self.residual <= self.tolerance
        self.u[self.free] = self._x
        return self.to_world(self.u[np.asarray(at, dtype=np.intp)])


@fast_kernel
def _multiply(indptr, indices, data, x, out):
    """out (n, 3) = A x of 3x3 blocks data (b, 3, 3) in compressed rows."""
    for i in range(indptr.size - 1):
        a, b, c = 0.0, 0.0, 0.0
        for k in range(indptr[i], indptr[i + 1]):
            block, y = data[k], x[indices[k]]
            a += block[0, 0] * y[0] + block[0, 1] * y[1] + block[0, 2] * y[2]
            b += block[1, 0] * y[0] + block[1, 1] * y[1] + block[1, 2] * y[2]
            c += block[2, 0] * y[0] + block[2, 1] * y[1] + block[2, 2] * y[2]
        out[i, 0], out[i, 1], out[i, 2] = a, b, c


@fast_kernel
def _precondition(inverse_diagonal, r, z):
    """z (n, 3) = D^-1 r; returns r . z."""
    total = 0.0
    for i in range(r.shape[0]):
        for p in range(3):
            s = 0.0
            for q in range(3):
                s += inverse_diagonal[i, p, q] * r[i, q]
            z[i, p] = s
            total += r[i, p] * s
    return total


@fast_kernel
def _dot(a, b):
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i, 0] * b[i, 0] + a[i, 1] * b[i, 1] + a[i, 2] * b[i, 2]
    return total


@fast_kernel
def conjugate_gradient(indptr, indices, data, inverse_diagonal, b, x, tolerance, max_iterations, scratch):
    """Solve A x = b from x (n, 3), in place; scratch (4, n, 3). Returns iterations and |b - A x| / |b|.

    The residual is the recurrence's, which follows the true one to rounding; it is not finite if b is not.
    """
    r, z, p, q = scratch[0], scratch[1], scratch[2], scratch[3]
    size = np.sqrt(_dot(b, b))
    if size == 0.0:
        x[:] = 0.0
        return 0, 0.0
    _multiply(indptr, indices, data, x, q)
    for i in range(b.shape[0]):
        for j in range(3):
            r[i, j] = b[i, j] - q[i, j]
    rz = _precondition(inverse_diagonal, r, z)
    p[:] = z
    for iteration in range(max_iterations):
        residual = np.sqrt(_dot(r, r)) / size
        if not residual > tolerance:
            return iteration, residual
        _multiply(indptr, indices, data, p, q)
        alpha = rz / _dot(p, q)
        for i in range(b.shape[0]):
            for j in range(3):
                x[i, j] += alpha * p[i, j]
                r[i, j] -= alpha * q[i, j]
        old = rz
        rz = _precondition(inverse_diagonal, r, z)
        beta = rz / old
        for i in range(b.shape[0]):
            for j in range(3):
                p[i, j] = z[i, j] + beta * p[i, j]
    return max_iterations, np.sqrt(_dot(r, r)) / size
