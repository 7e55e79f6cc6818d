"""A quasi-static linear elastic body whose K is factored once and whose inverse is kept on the boundary.

K u = R^T F in the frame of the clamped nodes (001, N. Talbi's thesis, 1.8). A step then only reads: the
free shape is a table, W a gathering of rows, the deformed surface one product.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from os import PathLike

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from palpo.physics.bodies import io
from palpo.physics.bodies.boundary import (
    Boundary,
    add_displacement,
    add_surface_displacement,
    free_displacement,
    place_surface,
)
from palpo.physics.bodies.clamped import ClampedBody, usual_elements
from palpo.physics.fem.cholesky import CholeskyFactor
from palpo.physics.fem.elimination import analyse
from palpo.physics.fem.laws import LINEAR
from palpo.physics.fem.material import Material
from palpo.physics.fem.rest_stiffness import lower_blocks, rest_stiffness
from palpo.physics.mesh.hex import HexMesh
from palpo.physics.mesh.tet import TetMesh
from palpo.physics.numerics.errors import InputError

Progress = Callable[[float], None]
"""Called now and then with the share that is done, 0 to 1."""

BATCH = 32
"""Nodes solved for between two calls of progress."""
FOREIGN = 1e-6
"""Relative disagreement with K beyond which a given inverse belongs to another body."""


class QuasistaticBody(ClampedBody):
    """Linear elasticity on tetrahedra or hexahedra, solved directly.

    clamped: node indices; all of them make a rigid body of no compliance. elements: their name; hexahedra are
    those of mean divergence where nothing is said.
    stiffness: K (3 n, 3 n) [N/m] instead of the one of mesh and material, as from a body file.
    inverse: K^-1 on `surface_nodes` (3 s, 3 s) [m/N] instead of computing it.
    cache: folder where K^-1 is kept by content; where it cannot be written, it is computed each time.
    Raises InputError as `ClampedBody`, for a K that is not positive definite, for a foreign inverse, and for
    a law that is not linear.
    """

    def __init__(
        self,
        name: str,
        mesh: TetMesh | HexMesh,
        material: Material,
        clamped: ArrayLike,
        gravity: ArrayLike = (0.0, -9.81, 0.0),
        elements: str | None = None,
        stiffness: sp.csr_array | None = None,
        inverse: NDArray | None = None,
        cache: str | PathLike[str] | None = None,
        progress: Progress | None = None,
    ) -> None:
        if material.law != LINEAR:
            what = f"material.law is {material.law!r}, but a quasi-static body is linear"
            raise InputError(f"body {name!r}: {what}.")
        if material.prony:
            raise InputError(
                f"body {name!r}: material.prony is given, but a quasi-static body remembers nothing."
            )
        super().__init__(name, mesh, material, clamped, gravity)
        self.elements = elements or usual_elements(mesh)
        self._given = stiffness
        compliance, sag = self._inverse(inverse, cache, progress or (lambda share: None))
        self.boundary = Boundary(
            np.ascontiguousarray(mesh.nodes[self.surface_nodes] - self.centre),
            compliance,
            np.ascontiguousarray(material.density * sag[:, self.surface_nodes]),
        )
        self.displace((), ())

    @cached_property
    def K(self) -> sp.csr_array:
        """Stiffness [N/m] over all freedoms, clamped ones included, shape (3 n, 3 n)."""
        if self._given is not None:
            return self._given
        return rest_stiffness(self.mesh, self.material, self.elements)

    @cached_property
    def second(self) -> Boundary:
        """Room for the boundary of this body with another Poisson's ratio; memory only once it is written."""
        return Boundary(*(np.zeros(array.shape) for array in self.boundary))

    def with_poisson_ratio(
        self, ratio: float, cache: str | PathLike[str] | None = None, progress: Progress | None = None
    ) -> "QuasistaticBody":
        """This body of another Poisson's ratio, at rest; InputError where its K was given."""
        if self._given is not None:
            raise InputError(
                f"body {self.name!r}: its K was given, and tells nothing of another Poisson's ratio"
            )
        return QuasistaticBody(
            self.name, self.mesh, replace(self.material, poisson_ratio=ratio), self.clamped, self.gravity,
            self.elements, cache=cache, progress=progress,
        )  # fmt: skip

    @cached_property
    def factor(self) -> CholeskyFactor:
        """Factor of K over the free nodes in ascending order; made when first asked for."""
        rows, cols, blocks = lower_blocks(self.K, self.free)
        factor = CholeskyFactor(analyse(self.free.size, rows, cols))
        try:
            factor.refactor(blocks, np.zeros(rows.size), 1.0, 0.0)
        except FloatingPointError as error:
            raise InputError(
                f"body {self.name!r}: its stiffness is not positive definite where it is not clamped; give "
                "the K of this mesh, or none, and check that no part of it hangs by a single edge."
            ) from error
        return factor

    def displacements(self, nodes: ArrayLike, forces: ArrayLike, at: ArrayLike) -> NDArray:
        """See DisplacementSolver; nodes of the surface only, cost proportional to the points asked for."""
        at_slots = self._slots(at)
        u = np.empty((at_slots.size, 3))
        free_displacement(self.boundary, self.to_body(self.gravity), at_slots, u)
        local = self.to_body(np.reshape(forces, (-1, 3)))
        add_displacement(self.boundary.compliance, self._slots(nodes), local, at_slots, u)
        return self.to_world(u)

    def free_displacement(self, nodes: ArrayLike) -> NDArray:
        """Displacements [m], shape (k, 3), world axes, of surface nodes (k,) under the weight alone."""
        return self.displacements((), (), nodes)

    def compliance(self, nodes: ArrayLike) -> NDArray:
        """K^-1 between surface nodes (k,) in world axes [m/N], shape (3 k, 3 k)."""
        slots = self._slots(nodes)
        blocks = self.boundary.compliance.reshape(self.surface_nodes.size, 3, -1, 3)[slots][:, :, slots]
        turned = np.einsum("ij,ajbk,lk->aibl", self.rotation, blocks, self.rotation)
        return turned.reshape(3 * slots.size, 3 * slots.size)

    def displace(self, nodes: ArrayLike, forces: ArrayLike) -> NDArray:
        """Equilibrium under forces (k, 3) [N], world axes, at surface nodes (k,) and the weight.

        Returns the positions of all `surface_nodes` [m], shape (s, 3), world axes; writes their rows of u.
        """
        local = self.to_body(np.reshape(forces, (-1, 3)))
        slots = self._slots(nodes)
        u = np.tensordot(self.to_body(self.gravity), self.boundary.sag, 1)
        add_surface_displacement(self.boundary.compliance, slots, local, u.reshape(-1))
        self.u[self.surface_nodes] = u
        placed = np.empty_like(u)
        place_surface(self.boundary.rest, u, self.position, self.rotation, placed)
        return placed

    def linearise(self) -> None:
        """Nothing to do: this body is linear (see IncrementalBody)."""

    def advance(self, nodes: ArrayLike, forces: ArrayLike) -> float:
        """`displace`, and by how much the surface moved: sum of |du| over its freedoms [m]."""
        before = self.u[self.surface_nodes]
        self.displace(nodes, forces)
        return float(np.abs(self.u[self.surface_nodes] - before).sum())

    def _slots(self, nodes: ArrayLike) -> NDArray[np.int32]:
        nodes = np.asarray(nodes, dtype=np.int32)
        slots = self.slot[nodes]
        if slots.size and slots.min() < 0:
            raise InputError(
                f"body {self.name!r}: node {nodes[slots.argmin()]} lies inside; forces and displacements are "
                "known at the nodes of the surface."
            )
        return slots

    def _inverse(
        self, given: NDArray | None, cache: str | PathLike[str] | None, progress: Progress
    ) -> tuple[NDArray, NDArray]:
        """K^-1 on the boundary, and the displacement per unit of body force [m4/N], shape (3, n, 3)."""
        if given is not None:
            self._refuse_foreign(given)
            return np.ascontiguousarray(given), self._solve_sag()
        if cache is None or self.rigid:
            return self._solve_compliance(progress), self._solve_sag()
        key = io.content_key(self.mesh.nodes, self.mesh.cells, self.clamped, *self._recipe())
        shapes = {"compliance": (3 * self.surface_nodes.size,) * 2, "sag": (3, *self.u.shape)}
        found = io.load_cached(cache, key, shapes)
        if found is None:
            found = {"compliance": self._solve_compliance(progress), "sag": self._solve_sag()}
            io.store_cached(cache, key, found)
        progress(1.0)
        return found["compliance"], found["sag"]

    def _recipe(self) -> tuple[object, ...]:
        """All that K depends on, beside the mesh."""
        if self._given is not None:
            return self._given.data, self._given.indices, self._given.indptr
        return self.material.youngs_modulus, self.material.poisson_ratio, self.elements

    def _solve_compliance(self, progress: Progress) -> NDArray:
        compliance = np.zeros((3 * self.surface_nodes.size,) * 2)
        loaded = np.intersect1d(self.surface_nodes, self.free)
        if loaded.size == 0:
            return compliance
        # Neighbours in the elimination order share their path to its root, which one batch then walks once.
        place = np.empty(self.free.size, dtype=np.int64)
        place[self.factor.symbolic.order] = np.arange(self.free.size)
        column = np.searchsorted(self.free, loaded)
        order = np.argsort(place[column])
        loaded, column = loaded[order], column[order]
        progress(0.0)
        slots, rows = _freedoms(self.slot[loaded]), _freedoms(column)
        for first in range(0, rows.size, 3 * BATCH):
            batch = slice(first, first + 3 * BATCH)
            unit = np.zeros((self.factor.n, rows[batch].size))
            unit[rows[batch], np.arange(rows[batch].size)] = 1.0
            compliance[np.ix_(slots[batch], slots)] = self.factor.solve_many(unit, unit)[rows].T
            progress(min(1.0, (first + 3 * BATCH) / rows.size))
        _make_symmetric(compliance)
        return compliance

    def _solve_sag(self) -> NDArray:
        sag = np.zeros((3, *self.u.shape))
        if not self.rigid:
            loads = self.volumes[self.free, None, None] * np.eye(3)
            solved = self.factor.solve_many(np.ascontiguousarray(loads.reshape(-1, 3)))
            sag[:, self.free] = solved.T.reshape(3, -1, 3)
        return sag

    def _refuse_foreign(self, inverse: NDArray) -> None:
        """InputError unless the inverse answers one load as K does."""
        size = 3 * self.surface_nodes.size
        if inverse.shape != (size, size):
            raise InputError(
                f"body {self.name!r}: K^-1 has shape {inverse.shape}, expected {(size, size)} for its "
                f"{self.surface_nodes.size} surface nodes."
            )
        if self.rigid:
            return
        load = np.zeros_like(self.u)
        load[self.surface_nodes] = np.random.default_rng(0).standard_normal((self.surface_nodes.size, 3))
        u = np.zeros_like(self.u)
        u[self.free] = self.factor.solve(load[self.free].ravel()).reshape(-1, 3)
        expected = u[self.surface_nodes].ravel()
        error = np.abs(inverse @ load[self.surface_nodes].ravel() - expected).max() / np.abs(expected).max()
        if not error <= FOREIGN:
            raise InputError(
                f"body {self.name!r}: K^-1 disagrees with K by {error:.1g} of the displacement; it belongs "
                "to another mesh, material or clamping: leave it out and it will be computed."
            )


def _make_symmetric(a: NDArray) -> None:
    """a becomes the mean of itself and its transpose, in stripes, so that there is no second one."""
    for first in range(0, len(a), 3 * BATCH):
        stripe = slice(first, first + 3 * BATCH)
        mean = 0.5 * (a[stripe, first:] + a[first:, stripe].T)
        a[stripe, first:], a[first:, stripe] = mean, mean.T


def _freedoms(nodes: NDArray) -> NDArray:
    """Freedoms of nodes or slots (k,), shape (3 k,)."""
    return (3 * nodes[:, None] + np.arange(3)).ravel()
