"""Mesh files: each format gives back its mesh, and each fault is one sentence that names the file."""

from pathlib import Path

import numpy as np
import pytest

from palpo.physics.mesh.generate import block, box_surface, hex_block, sphere_surface
from palpo.physics.mesh.hex import HexMesh
from palpo.physics.mesh.io import read_solid_mesh, read_surface_mesh, read_tet_mesh
from palpo.physics.mesh.tet import TetMesh, validate_tets
from palpo.physics.numerics.errors import InputError

meshio = pytest.importorskip("meshio")

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared mesh files are not on this machine")

TET_FORMATS = {
    "gmsh1.msh": lambda path, nodes, tets: path.write_text(_gmsh1_text(nodes, tets)),
    "gmsh2.msh": lambda path, nodes, tets: _gmsh(path, nodes, tets, "2.2", binary=False),
    "gmsh2b.msh": lambda path, nodes, tets: _gmsh(path, nodes, tets, "2.2", binary=True),
    "gmsh40.msh": lambda path, nodes, tets: _gmsh(path, nodes, tets, "4.0", binary=False),
    "gmsh41.msh": lambda path, nodes, tets: _gmsh(path, nodes, tets, "4.1", binary=False),
    "gmsh41b.msh": lambda path, nodes, tets: _gmsh(path, nodes, tets, "4.1", binary=True),
    "ascii.vtk": lambda path, nodes, tets: _write(path, nodes, tets, "vtk", binary=False),
    "binary.vtk": lambda path, nodes, tets: _write(path, nodes, tets, "vtk", binary=True),
    "old.vtk": lambda path, nodes, tets: _write(path, nodes, tets, "vtk42", binary=False),
    "ascii.vtu": lambda path, nodes, tets: _write(path, nodes, tets, "vtu", binary=False),
    "binary.vtu": lambda path, nodes, tets: _write(path, nodes, tets, "vtu", binary=True),
}
SURFACE_FORMATS = {
    "ascii.stl": lambda path, surface: _write_surface(path, surface, "stl", binary=False),
    "binary.stl": lambda path, surface: _write_surface(path, surface, "stl", binary=True),
    "surface.obj": lambda path, surface: _write_surface(path, surface, "obj"),
    "surface.vtk": lambda path, surface: _write_surface(path, surface, "vtk"),
    "surface.vtu": lambda path, surface: _write_surface(path, surface, "vtu"),
}


def _gmsh1_text(nodes, tets):
    lines = ["$NOD", str(len(nodes))]
    lines += [f"{i + 1} {x!r} {y!r} {z!r}" for i, (x, y, z) in enumerate(nodes.tolist())]
    lines += ["$ENDNOD", "$ELM", str(len(tets))]
    lines += [f"{i + 1} 4 1 1 4 {a} {b} {c} {d}" for i, (a, b, c, d) in enumerate((tets + 1).tolist())]
    return "\n".join([*lines, "$ENDELM", ""])


def _gmsh(path, nodes, tets, version, binary):
    meshio.gmsh.write(str(path), meshio.Mesh(nodes, [("tetra", tets)]), version, binary=binary)


def _write(path, nodes, tets, file_format, **options):
    meshio.write(path, meshio.Mesh(nodes, [("tetra", tets)]), file_format=file_format, **options)


def _write_surface(path, surface, file_format, **options):
    mesh = meshio.Mesh(surface.vertices, [("triangle", surface.triangles)])
    meshio.write(path, mesh, file_format=file_format, **options)


@pytest.fixture
def organ():
    return block((0.1, 0.2, 0.3), (2, 3, 4))


@pytest.mark.parametrize("name", TET_FORMATS)
def test_every_tet_format_gives_back_nodes_elements_and_boundary(name, tmp_path, organ):
    path = tmp_path / name
    TET_FORMATS[name](path, organ.nodes, organ.tets)
    mesh = read_tet_mesh(path)
    # Text formats are written with 11 digits or more.
    np.testing.assert_allclose(mesh.nodes, organ.nodes, atol=1e-11)
    np.testing.assert_array_equal(mesh.tets, organ.tets)
    assert mesh.nodes.dtype == np.float64 and mesh.nodes.flags.c_contiguous
    assert mesh.tets.dtype == np.int32 and mesh.tets.flags.c_contiguous
    boundary = read_surface_mesh(path)
    assert boundary.closed
    assert len(boundary.vertices) == len(organ.boundary_nodes)
    assert boundary.signed_volume == pytest.approx(organ.volume, rel=1e-9)


@pytest.mark.parametrize("name", ["gmsh22", "gmsh", "vtk", "vtu"])
def test_every_volume_format_gives_back_hexahedra_in_either_orientation(name, tmp_path):
    brick = hex_block((0.1, 0.2, 0.3), (2, 3, 4))
    path = tmp_path / f"brick.{'msh' if name.startswith('gmsh') else name}"
    mixed = brick.hexes.copy()
    mixed[::2] = mixed[::2, [4, 5, 6, 7, 0, 1, 2, 3]]
    meshio.write(path, meshio.Mesh(brick.nodes, [("hexahedron", mixed)]), file_format=name)
    mesh = read_solid_mesh(path)
    assert isinstance(mesh, HexMesh)
    np.testing.assert_array_equal(mesh.hexes, brick.hexes)
    np.testing.assert_allclose(mesh.nodes, brick.nodes, atol=1e-15)
    surface = read_surface_mesh(path)
    assert surface.closed
    assert surface.signed_volume == pytest.approx(0.1 * 0.2 * 0.3, rel=1e-12)


def test_a_solid_may_be_of_either_kind(tmp_path, organ):
    _write(tmp_path / "organ.vtu", organ.nodes, organ.tets, "vtu")
    mesh = read_solid_mesh(tmp_path / "organ.vtu")
    assert isinstance(mesh, TetMesh)
    np.testing.assert_array_equal(mesh.tets, organ.tets)


@pytest.mark.parametrize("name", SURFACE_FORMATS)
def test_every_surface_format_gives_back_a_closed_outward_surface(name, tmp_path):
    ball = sphere_surface(0.05, 1)
    path = tmp_path / name
    SURFACE_FORMATS[name](path, ball)
    surface = read_surface_mesh(path)
    assert surface.closed
    assert len(surface.vertices) == len(ball.vertices)  # an STL file holds each vertex six times
    assert surface.signed_volume == pytest.approx(ball.signed_volume, rel=1e-6)  # STL keeps 24 bits


@pytest.mark.parametrize("name", SURFACE_FORMATS)
def test_a_surface_that_faces_inward_is_turned(name, tmp_path):
    ball = sphere_surface(0.05, 1)
    path = tmp_path / name
    SURFACE_FORMATS[name](path, ball.flipped())
    assert read_surface_mesh(path).signed_volume == pytest.approx(ball.signed_volume, rel=1e-6)


@pytest.mark.parametrize("every", [1, 3])
def test_elements_of_either_node_order_are_oriented(every, tmp_path, organ):
    tets = organ.tets.copy()
    tets[::every] = tets[::every, [1, 0, 2, 3]]
    path = tmp_path / "mixed.vtk"
    _write(path, organ.nodes, tets, "vtk")
    mesh = read_tet_mesh(path)
    assert (mesh.volumes > 0.0).all()
    assert mesh.volume == pytest.approx(organ.volume, rel=1e-12)


def test_obj_quads_polygons_negative_indices_and_texture_indices_are_understood(tmp_path):
    path = tmp_path / "pyramid.obj"
    path.write_text(
        "# a square pyramid\nmtllib none.mtl\no body\n"
        "v 0 0 0\nv 1 0 0\nv 1 0 1\nv 0 0 1\nv 0.5 1 0.5\nvt 0 0\nvn 0 1 0\ns off\n"
        "f 1/1/1 2/1/1 3/1/1 4/1/1\nf 2//1 1//1 5//1\nf 3/1 2/1 5/1\nf -2 -3 -1\nf 1 4 5\nl 1 2\n"
    )
    surface = read_surface_mesh(path)
    assert surface.closed
    assert surface.signed_volume == pytest.approx(1.0 / 3.0, rel=1e-14)


def test_vtk_quads_are_cut_into_triangles(tmp_path):
    corners = np.array([[x, y, z] for x in (0.0, 1) for y in (0.0, 1) for z in (0.0, 1)])
    quads = np.array([[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]])
    meshio.write(tmp_path / "cube.vtk", meshio.Mesh(corners, [("quad", quads)]))
    surface = read_surface_mesh(tmp_path / "cube.vtk")
    assert len(surface.triangles) == 12
    assert surface.signed_volume == pytest.approx(1.0, rel=1e-14)


def test_lower_cells_beside_tetrahedra_are_ignored(tmp_path, organ):
    cells = [
        ("vertex", [[0]]),
        ("line", [[0, 1]]),
        ("triangle", organ.surface().triangles),
        ("tetra", organ.tets),
    ]
    meshio.write(tmp_path / "all.vtu", meshio.Mesh(organ.nodes, cells))
    np.testing.assert_array_equal(read_tet_mesh(tmp_path / "all.vtu").tets, organ.tets)


def test_gmsh1_numbers_may_have_gaps_and_any_order(tmp_path):
    path = tmp_path / "gaps.msh"
    path.write_text(
        "$NOD\n4\n70 0 0 0\n5 1 0 0\n9 0 1 0\n1000 0 0 1\n$ENDNOD\n"
        "$ELM\n3\n1 15 0 0 1 70\n2 1 0 0 2 70 5\n8 4 0 0 4 70 5 9 1000\n$ENDELM\n"
    )
    mesh = read_tet_mesh(path)
    np.testing.assert_array_equal(mesh.tets, [[0, 1, 2, 3]])
    assert mesh.volume == pytest.approx(1.0 / 6.0, rel=1e-14)


def test_unreferenced_nodes_are_refused_or_dropped_on_demand(tmp_path, organ):
    path = tmp_path / "stray.vtk"
    _write(path, np.vstack([[[9.0, 9, 9]], organ.nodes]), organ.tets + 1, "vtk")
    for read in (read_tet_mesh, read_surface_mesh):
        assert "node 0 (counted from 0) belongs to no element" in refusal(read, path)
    np.testing.assert_array_equal(read_tet_mesh(path, drop_unreferenced=True).tets, organ.tets)

    ball = sphere_surface(1.0, 0)
    path = tmp_path / "stray.obj"
    mesh = meshio.Mesh(np.vstack([ball.vertices, [[9.0, 9, 9]]]), [("triangle", ball.triangles)])
    meshio.write(path, mesh)
    assert "node 12 (counted from 0) belongs to no triangle" in refusal(read_surface_mesh, path)
    assert len(read_surface_mesh(path, drop_unreferenced=True).vertices) == 12


def refusal(read, path):
    """The message with which a file is refused: one line, the file's path first."""
    with pytest.raises(InputError) as caught:
        read(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    assert message.endswith(".")
    return message


def test_missing_unknown_and_unreadable_files_are_named(tmp_path):
    assert "no such mesh file" in refusal(read_tet_mesh, tmp_path / "absent.msh")
    assert "unknown mesh format '.step'" in refusal(read_tet_mesh, tmp_path / "part.step")
    assert "unknown mesh format ''" in refusal(read_surface_mesh, tmp_path / "part")
    (tmp_path / "folder.vtk").mkdir()
    assert "no such mesh file" in refusal(read_tet_mesh, tmp_path / "folder.vtk")


@pytest.mark.parametrize("suffix", [".msh", ".vtk", ".vtu", ".obj", ".stl"])
@pytest.mark.parametrize(
    "content", [b"", b"\n", b"hello\n", b"\x00\xff" * 100], ids=["empty", "blank", "text", "noise"]
)
def test_a_file_of_something_else_is_refused_quietly(suffix, content, tmp_path, capfd):
    path = tmp_path / f"other{suffix}"
    path.write_bytes(content)
    refusal(read_surface_mesh, path)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", [*TET_FORMATS, *SURFACE_FORMATS])
def test_a_truncated_file_is_refused(name, tmp_path, organ):
    whole = tmp_path / name
    if name in TET_FORMATS:
        TET_FORMATS[name](whole, organ.nodes, organ.tets)
    else:
        SURFACE_FORMATS[name](whole, sphere_surface(0.05, 1))
    data = whole.read_bytes()
    cut = tmp_path / f"cut-{name}"
    for part in np.linspace(0.0, 0.97, 25):
        cut.write_bytes(data[: int(part * len(data))])
        # An OBJ file has no end mark: cut between two lines it is a smaller, open surface.
        if name == "surface.obj":
            try:
                assert not read_surface_mesh(cut).closed
            except InputError as error:
                assert str(error).startswith(f"{cut}: ")
        else:
            refusal(read_surface_mesh, cut)


def test_a_file_of_tetrahedra_has_some(tmp_path):
    for name, write in SURFACE_FORMATS.items():
        write(tmp_path / name, box_surface((1, 1, 1)))
        message = refusal(read_tet_mesh, tmp_path / name)
        assert "has no tetrahedra; give its surface as .stl, .obj, .ply or .glb, with a size" in message


def test_other_solid_and_curved_elements_are_named(tmp_path, organ):
    brick = hex_block((0.1, 0.2, 0.3), (2, 3, 4))
    meshio.write(tmp_path / "hex.vtu", meshio.Mesh(brick.nodes, [("hexahedron", brick.hexes)]))
    assert "holds hexahedron elements" in refusal(read_tet_mesh, tmp_path / "hex.vtu")
    both = meshio.Mesh(brick.nodes, [("hexahedron", brick.hexes), ("tetra", organ.tets)])
    meshio.write(tmp_path / "both.vtu", both)
    assert "holds tetra elements beside hexahedra" in refusal(read_solid_mesh, tmp_path / "both.vtu")
    curved = meshio.Mesh(organ.nodes[:10], [("tetra10", np.arange(10)[None])])
    meshio.write(tmp_path / "curved.vtu", curved)
    assert "holds tetra10 elements" in refusal(read_tet_mesh, tmp_path / "curved.vtu")
    meshio.write(tmp_path / "six.vtu", meshio.Mesh(organ.nodes[:6], [("triangle6", np.arange(6)[None])]))
    assert "holds triangle6 faces" in refusal(read_surface_mesh, tmp_path / "six.vtu")


def test_cells_of_an_unknown_type_are_not_left_out_in_silence(tmp_path, organ):
    path = tmp_path / "strange.vtk"
    _write(path, organ.nodes, organ.tets, "vtk42", binary=False)
    head, types = path.read_text().rsplit("CELL_TYPES", 1)
    path.write_text(head + "CELL_TYPES" + types.replace("\n10\n", "\n99\n", 1))
    assert "not a complete VTK file of a supported kind" in refusal(read_tet_mesh, path)


def test_a_flat_element_of_a_file_is_named(tmp_path, organ):
    nodes = organ.nodes.copy()
    nodes[organ.tets[4, 0]] = nodes[organ.tets[4, 1:]].mean(axis=0)
    _write(tmp_path / "flat.vtu", nodes, organ.tets, "vtu")
    assert "(counted from 0) with nodes" in (message := refusal(read_tet_mesh, tmp_path / "flat.vtu"))
    assert "degenerate" in message


def test_a_coordinate_that_is_no_number_is_named(tmp_path, organ):
    nodes = organ.nodes.copy()
    nodes[3, 2] = np.nan
    _write(tmp_path / "nan.vtk", nodes, organ.tets, "vtk")
    assert "node 3 (counted from 0)" in refusal(read_tet_mesh, tmp_path / "nan.vtk")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("$ENDELM", "", "no complete section $ELM ... $ENDELM"),
        ("$NOD\n60", "$NOD\n61", "announces 61 rows and holds 60"),
        (" 4 1 1 4 ", " 4 1 1 3 ", "element 1 announces 3 nodes and lists 4"),
        ("\n2 ", "\n1 ", "two nodes have the same number"),
        ("\n1 4 1 1 4 ", "\n1 4 1 1 4 77", "uses node 77"),
    ],
)
def test_a_faulty_gmsh1_file_is_explained(old, new, words, tmp_path, organ):
    path = tmp_path / "faulty.msh"
    text = _gmsh1_text(organ.nodes, organ.tets)
    assert old in text
    path.write_text(text.replace(old, new, 1))
    assert words in refusal(read_tet_mesh, path)


@needs_shared
@pytest.mark.parametrize(
    ("name", "n_nodes", "n_tets"), [("liver.msh", 181, 596), ("cylinder.msh", 510, 2430)]
)
def test_real_gmsh1_organs_are_fit_for_simulation(name, n_nodes, n_tets):
    mesh = read_tet_mesh(SHARED / name)
    assert (len(mesh.nodes), len(mesh.tets)) == (n_nodes, n_tets)
    validate_tets(mesh.nodes, mesh.tets, name)
    assert read_surface_mesh(SHARED / name).signed_volume == pytest.approx(mesh.volume, rel=1e-12)


@needs_shared
def test_real_smooth_liver_encloses_the_organ_it_was_made_from():
    smooth = read_surface_mesh(SHARED / "liver-smooth.obj")
    smooth.require_volume("liver-smooth.obj")
    # Smoothing and the chords of the coarse mesh move the surface by a few hundredths of its size.
    assert smooth.signed_volume == pytest.approx(read_tet_mesh(SHARED / "liver.msh").volume, rel=0.1)
