"""The kinds of elements, a line each; and the elements of a mesh."""

from functools import partial

from palpo.physics.fem import hex8, tet4, tet10
from palpo.physics.fem.element import Element, Elements
from palpo.physics.fem.integrated import Integrated, PatchIntegrated
from palpo.physics.fem.laws import LAWS, LINEAR
from palpo.physics.fem.material import Material
from palpo.physics.fem.patch_tetrahedra import PatchTetrahedra, no_own_stiffness
from palpo.physics.fem.tetrahedra import Tetrahedra
from palpo.physics.fem.turned_stiffness import TurnedStiffness
from palpo.physics.mesh.hex import HexMesh
from palpo.physics.mesh.quadratic import QuadraticTetMesh
from palpo.physics.mesh.tet import TetMesh
from palpo.physics.numerics.errors import InputError

SolidMesh = TetMesh | HexMesh | QuadraticTetMesh
"""A body of any element."""

_HEX8 = Element(
    HexMesh, hex8.stiffness, hex8.lumped_volumes, hex8.products, hex8.mean_gradients, TurnedStiffness, 0.23
)

_TET4 = Element(
    TetMesh, tet4.stiffness, tet4.lumped_volumes, tet4.products, tet4.mean_gradients, Tetrahedra, 0.42,
    tet4.points,
)  # fmt: skip
ELEMENTS = {
    "tet4": _TET4,
    "tet4-patch": _TET4._replace(stiffness=no_own_stiffness, moving=PatchTetrahedra),
    "tet10": Element(
        QuadraticTetMesh, tet10.stiffness, tet10.lumped_volumes, tet10.products, tet10.mean_gradients,
        TurnedStiffness, 0.2, tet10.points,
    ),
    "hex8": _HEX8,
    "hex8-bbar": _HEX8._replace(stiffness=partial(hex8.stiffness, integration="bbar")),
    "hex8-selective": _HEX8._replace(stiffness=partial(hex8.stiffness, integration="selective")),
    "hex8-full": _HEX8._replace(
        stiffness=partial(hex8.stiffness, integration="full"), points=hex8.gradients
    ),
}  # fmt: skip
"""By their names; the first of a kind of mesh is what such a mesh is made of where nothing is said."""


def element_of(mesh: SolidMesh, name: str | None = None) -> Element:
    """The element of that name, or the usual one of such a mesh.

    Raises InputError for a name that is not known, and for an element that the mesh does not have.
    """
    fitting = {key: kind for key, kind in ELEMENTS.items() if isinstance(mesh, kind.mesh)}
    if name is None:
        return next(iter(fitting.values()))
    if name not in fitting:
        raise InputError(
            f"elements are {name!r}, but a mesh of this kind can be made of: {', '.join(fitting)}."
        )
    return fitting[name]


def make_elements(mesh: SolidMesh, material: Material, name: str | None = None) -> Elements:
    """The elements of a mesh as they turn and deform by the material's law.

    Raises InputError as `element_of` and an Element do, and for an element that has Hooke's law alone.
    """
    element = element_of(mesh, name)
    if material.law == LINEAR:
        return element.moving(element, mesh, material)
    if element.points is None:
        can = [key for key, kind in ELEMENTS.items() if kind.points is not None]
        raise InputError(
            f"material.law is {material.law!r}, which these elements do not follow: choose {', '.join(can)}."
        )
    kind = PatchIntegrated if element.moving is PatchTetrahedra else Integrated
    return kind(element, mesh, material, LAWS[material.law](*material.lame(), material.shape))
