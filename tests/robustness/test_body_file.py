"""Body files: what is written is read, and each fault is one sentence that names the file."""

import h5py
import numpy as np
import pytest

from palpo.physics.bodies.io import StoredBody, read_body, write_body
from palpo.physics.bodies.quasistatic import QuasistaticBody
from palpo.physics.fem.material import Material
from palpo.physics.mesh.generate import block, hex_block
from palpo.physics.numerics.errors import InputError

TISSUE = Material(youngs_modulus=2e4, poisson_ratio=0.4, density=1050.0)
MESHES = {"tets": block((0.06, 0.03, 0.04), (2, 3, 2)), "hexes": hex_block((0.06, 0.03, 0.04), (2, 3, 2))}


def body_of(kind: str) -> QuasistaticBody:
    mesh = MESHES[kind]
    return QuasistaticBody("organ", mesh, TISSUE, np.flatnonzero(mesh.nodes[:, 0] < -0.0299))


@pytest.fixture(params=MESHES)
def whole(request, tmp_path):
    """A file with everything in it."""
    body = body_of(request.param)
    path = tmp_path / "organ.h5"
    triangles = body.surface.triangles
    write_body(path, StoredBody(body.mesh, TISSUE, body.clamped, triangles, body.K, body.boundary.compliance))
    return path


def refusal(path) -> str:
    with pytest.raises(InputError) as caught:
        read_body(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    assert message.endswith(".")
    return message


@pytest.mark.parametrize("kind", MESHES)
def test_a_whole_body_is_read_back_as_it_was_written(kind, tmp_path):
    body = body_of(kind)
    path = tmp_path / "organ.h5"
    written = StoredBody(
        body.mesh, TISSUE, body.clamped, body.surface.triangles, body.K, body.boundary.compliance
    )
    write_body(path, written)
    read = read_body(path)
    assert type(read.mesh) is type(body.mesh)
    assert read.material == TISSUE
    np.testing.assert_array_equal(read.mesh.nodes, body.mesh.nodes)
    elements = "tets" if kind == "tets" else "hexes"
    np.testing.assert_array_equal(getattr(read.mesh, elements), getattr(body.mesh, elements))
    np.testing.assert_array_equal(read.clamped, body.clamped)
    np.testing.assert_array_equal(read.triangles, body.surface.triangles)
    assert abs(read.stiffness - body.K).max() == 0.0
    np.testing.assert_array_equal(read.inverse, body.boundary.compliance)
    again = QuasistaticBody(
        "again", read.mesh, read.material, read.clamped, stiffness=read.stiffness, inverse=read.inverse
    )
    np.testing.assert_array_equal(
        again.free_displacement(again.surface_nodes), body.free_displacement(body.surface_nodes)
    )


@pytest.mark.parametrize("kind", MESHES)
def test_a_body_of_the_necessary_parts_alone_is_read(kind, tmp_path):
    path = tmp_path / "bare.h5"
    write_body(path, StoredBody(MESHES[kind], TISSUE, np.zeros(0, np.int32)))
    with h5py.File(path, "a") as file:
        del file["clamped"], file["material"].attrs["density"]
    read = read_body(path)
    assert read.clamped.size == 0
    assert (read.triangles, read.stiffness, read.inverse) == (None, None, None)
    assert read.material.density == 1000.0


def test_a_dense_stiffness_and_an_inverse_over_all_nodes_in_any_order_are_understood(whole):
    body = body_of("hexes" if read_body(whole).mesh.__class__.__name__ == "HexMesh" else "tets")
    free = (3 * body.free[:, None] + np.arange(3)).ravel()
    inverse = np.zeros(body.K.shape)
    inverse[np.ix_(free, free)] = np.linalg.inv(body.K.toarray()[np.ix_(free, free)])
    order = np.random.default_rng(0).permutation(len(body.mesh.nodes))
    dofs = (3 * order[:, None] + np.arange(3)).ravel()
    with h5py.File(whole, "a") as file:
        del file["stiffness"], file["inverse"]
        file["stiffness"] = body.K.toarray()
        file["inverse/nodes"] = order
        file["inverse/values"] = 0.5 * (inverse + inverse.T)[np.ix_(dofs, dofs)]
    read = read_body(whole)
    assert abs(read.stiffness - body.K).max() == 0.0
    largest = np.abs(body.boundary.compliance).max()
    assert np.abs(read.inverse - body.boundary.compliance).max() < 1e-11 * largest


def test_elements_of_either_orientation_are_turned(whole):
    with h5py.File(whole, "a") as file:
        elements = file["elements"][()]
        inside_out = [1, 0, 2, 3] if elements.shape[1] == 4 else [4, 5, 6, 7, 0, 1, 2, 3]
        file["elements"][...] = elements[:, inside_out]
    assert read_body(whole).mesh.volume == pytest.approx(0.06 * 0.03 * 0.04, rel=1e-12)


def test_missing_truncated_and_foreign_files_are_named(whole, tmp_path):
    assert "no such body file" in refusal(tmp_path / "absent.h5")
    data = whole.read_bytes()
    cut = tmp_path / "cut.h5"
    for share in np.linspace(0.0, 0.98, 20):
        cut.write_bytes(data[: int(share * len(data))])
        refusal(cut)
    cut.write_text("material: tissue\n")
    assert "not a complete HDF5 body file" in refusal(cut)
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["fclib_local/W"] = np.eye(3)
    assert "another kind (it holds fclib_local)" in refusal(tmp_path / "other.h5")


def spoil(key, change):
    """A change of one dataset."""

    def apply(file):
        value = change(file[key][()])
        del file[key]
        file[key] = value

    return apply


def set_attribute(group, key, value):
    def apply(file):
        file[group].attrs[key] = value

    return apply


def remove(key):
    def apply(file):
        del file[key]

    return apply


def with_entry(array, index, value):
    array = array.copy()
    array[index] = value
    return array


@pytest.mark.parametrize(
    ("apply", "words"),
    [
        (remove("nodes"), "/nodes is missing"),
        (remove("material"), "/material is missing"),
        (set_attribute("/", "version", 2), "body file of version 2, but this program reads version 1"),
        (lambda file: file["material"].attrs.__delitem__("poisson_ratio"), "no attribute poisson_ratio"),
        (set_attribute("material", "poisson_ratio", 0.5), "poisson_ratio is 0.5 but must be between"),
        (spoil("nodes", lambda a: with_entry(a, (4, 1), np.nan)), "node 4 (counted from 0) has coordinates"),
        (spoil("nodes", lambda a: a[:, :2]), "nodes have shape (36, 2)"),
        (spoil("nodes", lambda a: np.full(a.shape, b"x")), "/nodes does not hold numbers"),
        (spoil("elements", lambda a: a[:, :3]), "expected (m, 4) for tetrahedra or (m, 8) for hexahedra"),
        (spoil("elements", lambda a: with_entry(a, (2, 0), 999)), "nodes run from 0 to 35"),
        (spoil("elements", lambda a: a.astype(float)), "index nodes with float64, expected integers"),
        (spoil("elements", lambda a: a[1:]), "belongs to no element"),
        (spoil("clamped", lambda a: with_entry(a, 0, -1)), "clamped node 0 (counted from 0) refers"),
        (spoil("triangles", lambda a: with_entry(a, (1, 2), 36)), "triangle 1 (counted from 0)"),
        (spoil("stiffness/data", lambda a: with_entry(a, 1, a[1] + 5.0)), "its mirror image differ by 5 "),
        (spoil("stiffness/data", lambda a: with_entry(a, 7, np.inf)), "/stiffness holds NaN or infinity"),
        (spoil("stiffness/indices", lambda a: with_entry(a, 3, 9999)), "no matrix in compressed rows"),
        (spoil("stiffness/indptr", lambda a: a[:-3]), "expected 108 rows"),
        (spoil("inverse/values", lambda a: with_entry(a, (0, 1), 1.0)), "/inverse is not symmetric"),
        (spoil("inverse/values", lambda a: a[:-3, :-3]), "/inverse/values has shape"),
        (spoil("inverse/nodes", lambda a: with_entry(a, 0, a[1])), "/inverse lacks node"),
        (remove("inverse/nodes"), "not a complete HDF5 body file"),
    ],
)  # fmt: skip
def test_each_fault_is_one_sentence(apply, words, whole):
    with h5py.File(whole, "a") as file:
        apply(file)
    assert words in refusal(whole)


def test_a_file_that_cannot_be_written_is_named_and_an_old_one_survives(tmp_path, whole):
    body = StoredBody(MESHES["tets"], TISSUE, np.arange(9))
    with pytest.raises(InputError, match="cannot be written"):
        write_body(tmp_path / "absent" / "organ.h5", body)
    before = whole.read_bytes()
    broken = StoredBody(MESHES["tets"], TISSUE, np.arange(9), triangles=np.array([object()]))
    with pytest.raises(TypeError):
        write_body(whole, broken)
    assert whole.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == [whole.name]
