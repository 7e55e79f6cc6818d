"""Linear tetrahedra that resist a change of volume in patches, not each alone.

A linear tetrahedron has one strain, so that near a Poisson's ratio of 1/2 each of them keeps its own volume:
more conditions than nodes can meet, and the mesh locks. Here that part of the energy is one of patches of
some five elements, with theta_e = tr(R^T F) - 3 of an element,

    theta_p = sum_e V_e theta_e / V_p,    E = sum_e V_e mu eps:eps + sum_p V_p lam / 2 theta_p^2.

As a change of R leaves tr(R^T F) alone, the force is that of elements under the tension lam theta_p of their
patch, and the stiffness at fixed rotations

    K = sum_e K_e(0, mu) + sum_p V_p lam b_p b_p^T,    b_p = sum_e V_e R_e g_e / V_p,

symmetric and, lam being above -2/3 mu, never negative. Each element keeps its own shear energy mu eps:eps,
of full rank, so that no pattern of nodes moves without force. The price: all nodes of a patch are coupled.
A patch is of one material; of another modulus than the body's all V_e are so many times larger.
Source: de Souza Neto, Pires & Owen, F-bar-based linear triangles and tetrahedra for finite strain analysis of
nearly incompressible solids (IJNME 2005), of which this is the law of small strains in turned axes.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.physics.fem.assembly import BlockPattern, NodeGroups
from palpo.physics.fem.corotational import add_line
from palpo.physics.fem.element import Element, Floats
from palpo.physics.fem.element_rotations import deformation, matrix_of
from palpo.physics.fem.material import Material
from palpo.physics.fem.tetrahedra import Tetrahedra
from palpo.physics.mesh.patches import patches_of
from palpo.physics.mesh.tet import TetMesh
from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.kernels import kernel


@kernel
def patch_changes(field, rest, cells, g, volumes, patch, whole, quats, theta):
    """theta (k,): mean of R : grad field - rest over the elements of each patch.

    rest: 3 of positions, 0 of a displacement or a velocity (n, 3). patch (m,): of each element; whole (k,):
    their volumes [m3]. quats (m, 4): rotations as they are.
    """
    theta[:] = 0.0
    for e in range(cells.shape[0]):
        r = matrix_of(quats[e, 0], quats[e, 1], quats[e, 2], quats[e, 3])
        f = deformation(field, cells, g, e)
        trace = (
            r[0] * f[0] + r[1] * f[1] + r[2] * f[2] + r[3] * f[3] + r[4] * f[4] + r[5] * f[5]
            + r[6] * f[6] + r[7] * f[7] + r[8] * f[8]
        )  # fmt: skip
        theta[patch[e]] += volumes[e] * (trace - rest)
    for k in range(theta.size):
        theta[k] /= whole[k]


@kernel
def add_patch_tension(cells, g, volumes, patch, quats, tension, force):
    """force (n, 3) += V s R g_a at each node, s the tension (k,) [Pa] of the element's patch."""
    for e in range(cells.shape[0]):
        r = matrix_of(quats[e, 0], quats[e, 1], quats[e, 2], quats[e, 3])
        s = volumes[e] * tension[patch[e]]
        for i in range(3):
            add_line(force, cells, g, e, i, s * r[3 * i], s * r[3 * i + 1], s * r[3 * i + 2])


@kernel
def add_patch_stiffness(cells, g, volumes, patch, whole, lam, quats, start, places, group_block, blocks):
    """blocks (b, 9) += the lower blocks of sum_p V_p lam b_p b_p^T [N/m].

    start (k + 1,): where the nodes of each patch begin; places (m, 4): where an element's nodes are among
    those. group_block: of the BlockPattern whose groups the patches' nodes are.
    """
    slopes = np.zeros((start[-1], 3))
    for e in range(cells.shape[0]):
        r = matrix_of(quats[e, 0], quats[e, 1], quats[e, 2], quats[e, 3])
        for a in range(4):
            x, y, z = volumes[e] * g[e, a, 0], volumes[e] * g[e, a, 1], volumes[e] * g[e, a, 2]
            for i in range(3):
                slopes[places[e, a], i] += r[3 * i] * x + r[3 * i + 1] * y + r[3 * i + 2] * z
    add_pair_products(slopes, lam / whole, start, group_block, blocks)


@kernel
def add_pair_products(slopes, stiffness, start, group_block, blocks):
    """blocks (b, 9) += the lower blocks of sum_p k_p s_p s_p^T of slopes (nodes of all patches, 3) and
    stiffness k (patches,); start and group_block as above."""
    pair = 0
    for k in range(stiffness.size):
        stiff = stiffness[k]
        for a in range(start[k], start[k + 1]):
            x, y, z = stiff * slopes[a, 0], stiff * slopes[a, 1], stiff * slopes[a, 2]
            for b in range(start[k], a + 1):
                block = group_block[pair]
                pair += 1
                if block < 0:
                    continue
                u, v, w = slopes[b, 0], slopes[b, 1], slopes[b, 2]
                blocks[block, 0] += x * u
                blocks[block, 1] += x * v
                blocks[block, 2] += x * w
                blocks[block, 3] += y * u
                blocks[block, 4] += y * v
                blocks[block, 5] += y * w
                blocks[block, 6] += z * u
                blocks[block, 7] += z * v
                blocks[block, 8] += z * w


class PatchTetrahedra(Tetrahedra):
    """See `patch_volume`; an `Elements`. patch (m,): of each element, palpo.physics.mesh.patches.

    Raises InputError for an element without volume.
    """

    def __init__(self, element: Element, mesh: TetMesh, material: Material) -> None:
        super().__init__(element, mesh, material)
        kind = material.stiffness_of(len(mesh.tets))
        self.patch = patches_of(mesh.nodes, mesh.tets, kind) if mesh.patches is None else mesh.patches
        self.bulk, shear = material.lame()
        self.lame = (0.0, shear)
        self.whole = np.bincount(self.patch, self.weights)
        self._group(len(mesh.nodes))

    def _group(self, n: int) -> None:
        """The nodes of the patches, of n, and where each element has its own among them (m, 4)."""
        pairs, place = np.unique(self.patch[:, None].astype(np.int64) * n + self.cells, return_inverse=True)
        start = np.searchsorted(pairs, np.arange(len(self.whole) + 1) * n)
        self._nodes, self.places = NodeGroups(start, (pairs % n).astype(np.int32)), place.reshape(-1, 4)

    @property
    def groups(self) -> NodeGroups:
        """See Elements."""
        return self._nodes

    def part(self, which: NDArray[np.int64]) -> "PatchTetrahedra":
        """See Elements. Of whole patches, or of elements on whose others a field does nothing."""
        out = object.__new__(PatchTetrahedra)
        for name in ("cells", "gradients", "volumes", "weights", "patch"):
            setattr(out, name, np.ascontiguousarray(getattr(self, name)[which]))
        out.lame, out.bulk, out.whole = self.lame, self.bulk, self.whole
        out._group(int(self.cells.max()) + 1)
        return out

    def mean(self, of_elements: Floats) -> Floats:
        """Means over the patches of what is told of elements (m,), at each element, (m,)."""
        return (np.bincount(self.patch, self.weights * of_elements) / self.whole)[self.patch]

    def _changes(self, field: Floats, rest: float, quats: Floats) -> Floats:
        """theta of the patches (k,) in a field; rest as `patch_changes`."""
        theta = np.empty(len(self.whole))
        patch_changes(
            field, rest, self.cells, self.gradients, self.weights, self.patch, self.whole, quats, theta
        )
        return theta

    def _add(self, field: Floats, rest: float, quats: Floats, scale: float, force: Floats) -> None:
        """force += scale times that of the patches' tensions in a field."""
        tension = scale * self.bulk * self._changes(field, rest, quats)
        add_patch_tension(self.cells, self.gradients, self.weights, self.patch, quats, tension, force)

    def add_forces(self, x: Floats, quats: Floats, force: Floats) -> None:
        """See Elements."""
        super().add_forces(x, quats, force)
        self._add(x, 3.0, quats, -1.0, force)

    def add_turned(self, v: Floats, quats: Floats, since: Floats, scale: float, force: Floats) -> None:
        """See Elements."""
        super().add_turned(v, quats, since, scale, force)
        self._add(v, 0.0, quats, scale, force)
        self._add(v, 0.0, since, -scale, force)

    def add_stiff(self, v: Floats, quats: Floats, scale: float, force: Floats) -> None:
        """See Elements."""
        super().add_stiff(v, quats, scale, force)
        self._add(v, 0.0, quats, scale, force)

    def assemble(self, x: Floats, quats: Floats, pattern: BlockPattern, blocks: Floats) -> None:
        """See Elements."""
        super().assemble(x, quats, pattern, blocks)
        add_patch_stiffness(
            self.cells, self.gradients, self.weights, self.patch, self.whole, self.bulk, quats,
            self._nodes.start, self.places, pattern.group_block, blocks,
        )  # fmt: skip

    def tensions(self, x: Floats, quats: Floats) -> Floats:
        """See Tetrahedra."""
        self.largest_turn(x, quats.copy(), quats)
        return np.asarray(self.bulk * self._changes(x, 3.0, quats)[self.patch])

    def energy(self, x: Floats, quats: Floats) -> float:
        """See Elements."""
        shear, theta = super().energy(x, quats), self._changes(x, 3.0, quats)
        return shear + float(0.5 * self.bulk * self.whole @ (theta * theta))


def no_own_stiffness(nodes: Floats, cells: NDArray[np.int32], lam: float, mu: float) -> Any:
    """For Element.stiffness: such an element yields with its patch. Raises InputError."""
    raise InputError(
        "elements that change their volume in patches have no stiffness of their own, which this body needs: "
        "use others, such as tet4."
    )
