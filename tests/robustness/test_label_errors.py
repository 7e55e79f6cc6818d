"""Segmented volumes that are none, or that announce more than they hold, are refused in words."""

import gzip
import tracemalloc

import nibabel
import nrrd
import numpy as np
import pytest

from palpo.app.cli.main import main
from palpo.physics.mesh.labels import LONGEST_HEADER, read_labels
from palpo.physics.numerics.errors import InputError

VALUES = np.zeros((6, 5, 4), np.int16)
VALUES[1:5, 1:4, 1:3] = 3
HEADER = b"""NRRD0005
type: short
dimension: 3
sizes: 6 5 4
encoding: raw
endian: little
space: left-posterior-superior
space directions: (1,0,0) (0,1,0) (0,0,1)
space origin: (0,0,0)

"""
DATA = VALUES.tobytes(order="F")

FAULTS = {
    "sizes": (b"6 5 4", b"6 5 4000", "bytes are missing of the 120000 voxels that it announces"),
    "vast sizes": (b"6 5 4", b"60000 50000 40000", "announces 60000 x 50000 x 40000 voxels"),
    "sizes beyond numbers": (b"6 5 4", b"9" * 400 + b" 5 4", "voxels; more than .* are not read"),
    "negative sizes": (b"6 5 4", b"-6 5 4", "its sizes are -6 x 5 x 4"),
    "two sizes": (b"6 5 4", b"30 4", "its sizes are 30 x 4; give three"),
    "words for sizes": (b"6 5 4", b"six 5 4", "'six'"),
    "many": (b"sizes: 6 5 4", b"sizes: 2 3 5 4", "segments that overlap and times have a volume each"),
    "type": (b"short", b"block", '"type" is block; use'),
    "endian": (b"little", b"middle", '"endian" is middle; use little, big'),
    "encoding": (b"raw", b"hex", '"encoding" is hex; use raw, gzip'),
    "no axes": (b"space directions: ", b"directions: ", 'neither "space directions" nor "spacings"'),
    "axes of nan": (b"(1,0,0)", b"(nan,0,0)", "its axes are .*nan.* not all numbers"),
    "flat axes": (b"(0,0,1)", b"(0,2,0)", "do not span space"),
    "two axes": (b" (0,0,1)", b"", '"space directions" are .*; three vectors are needed'),
    "elsewhere": (
        b"encoding",
        b"data file: /etc/passwd\nencoding",
        '"data file" says that values are in another',
    ),
    "skip": (b"encoding", b"byte skip: 10\nencoding", '"byte skip" is 10'),
    "unit": (b"space origin", b'space units: "parsec" "mm" "mm"\nspace origin', "its unit is mm and parsec"),
    "no end": (b"\n\n", b"\n", "no NRRD header that ends with an empty line"),
    "magic": (b"NRRD0005", b"P5", "no NRRD header"),
}


@pytest.mark.parametrize(("old", "new", "words"), FAULTS.values(), ids=FAULTS)
def test_a_faulty_header_is_explained(old, new, words, tmp_path):
    path = tmp_path / "scan.nrrd"
    path.write_bytes(HEADER + DATA)
    assert read_labels(path).parts() == {3: 24}
    path.write_bytes(HEADER.replace(old, new, 1) + DATA)
    with pytest.raises(InputError, match=rf"scan\.nrrd: no segmented volume that can be read: .*{words}"):
        read_labels(path)


@pytest.mark.parametrize("name", ["a.nrrd", "a.nii.gz"])
def test_no_more_is_unpacked_than_is_announced(name, tmp_path):
    path, zeros = tmp_path / name, bytes(2**24)
    if name == "a.nrrd":
        begun, rest = HEADER.replace(b"raw", b"gzip"), DATA
        packed = begun + gzip.compress(rest + zeros)
    else:
        nibabel.save(nibabel.Nifti1Image(VALUES, np.eye(4)), tmp_path / "a.nii")
        packed = gzip.compress((tmp_path / "a.nii").read_bytes() + zeros)
    path.write_bytes(packed + gzip.compress(zeros) * 50)
    tracemalloc.start()
    try:
        assert read_labels(path).parts() == {3: 24}
        # the header's limit, and a little
        assert tracemalloc.get_traced_memory()[1] < 4 * LONGEST_HEADER
    finally:
        tracemalloc.stop()


def test_a_header_without_an_end_is_not_read_on_and_on(tmp_path):
    path = tmp_path / "a.nrrd"
    with path.open("wb") as file:
        file.write(b"NRRD0005\n#")
        file.truncate(2**36)
    with pytest.raises(InputError, match="empty line"):
        read_labels(path)


def spoilt(**values):
    image = nibabel.Nifti1Image(VALUES, np.eye(4))
    raw = bytearray(image.to_bytes())
    header = np.frombuffer(raw, nibabel.nifti1.header_dtype, count=1)
    for key, value in values.items():
        header[key] = value
    return bytes(raw)


NIFTI = {
    "affine of nan": ({"srow_x": np.nan}, "its axes are .*nan"),
    "flat affine": ({"srow_x": 0.0}, "do not span space"),
    "sizes": ({"dim": [3, 600, 500, 400, 1, 1, 1, 1]}, "bytes are missing of the 120000000 voxels"),
    "vast": ({"dim": [3, 32767, 32767, 32767, 1, 1, 1, 1]}, "more than .* are not read"),
    "negative": ({"dim": [3, -6, 5, 4, 1, 1, 1, 1]}, "its sizes are -6 x 5 x 4"),
    "times": ({"dim": [4, 2, 3, 5, 4, 1, 1, 1]}, "times have a volume each"),
    "type": ({"datatype": 32}, '"datatype" is 32'),
    "offset": ({"vox_offset": 1e30}, r'"vox_offset" is 1e\+30'),
    "no offset": ({"vox_offset": np.nan}, '"vox_offset" is nan'),
    "slope": ({"scl_slope": np.inf, "scl_inter": 1.0}, "no numbers|whole numbers"),
    "length": ({"sizeof_hdr": 5}, "no header of NIfTI"),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("values", "words"), NIFTI.values(), ids=NIFTI)
def test_a_faulty_nifti_is_explained(values, words, tmp_path):
    path = tmp_path / "scan.nii"
    path.write_bytes(spoilt(**values))
    with pytest.raises(InputError, match=rf"scan\.nii: no segmented volume that can be read: .*({words})"):
        read_labels(path)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (VALUES + 0.25, r"holds 0\.25; labels are whole numbers"),
        (np.where(VALUES > 0, np.nan, 0.0), "some of its values are no numbers"),
        (VALUES.astype(float) * 1e9, r"go from 0 to 3e\+09"),
        (np.arange(8000).reshape(20, 20, 20), "8000 different values; that is an image"),
    ],
)
def test_an_image_is_no_segmentation(values, words, tmp_path):
    nrrd.write(str(tmp_path / "a.nrrd"), values, {"spacings": [1.0] * 3})
    with pytest.raises(InputError, match=words):
        read_labels(tmp_path / "a.nrrd")


SCENE = """
title = "scan"
tool = {{ body = "ball" }}
[[bodies]]
kind = "rigid"
name = "ball"
rate = "high"
mass = 0.03
geometry = {{ kind = "sphere", radius = 0.004 }}
[[bodies]]
kind = "mesh"
name = "bone"
geometry = {{ kind = "segment", path = "{path}", {keys} }}
"""


@pytest.mark.parametrize(
    ("path", "keys", "words"),
    [
        ("scan.nrrd", 'label = 4, size = "1 mm"', "scan.nrrd: no voxel has label = 4; it has 3."),
        ("scan.nrrd", 'label = 0, size = "1 mm"', "no voxel has label = 0"),
        ("scan.nrrd", "label = 3", "geometry.size"),
        ("scan.nrrd", 'label = "liver", size = "1 mm"', "geometry.label"),
        ("scan.nrrd", 'label = 3, size = "9 mm"', "give a smaller size"),
        ("scan.nrrd", "label = 3, size = 1e-9", "size 1e-09"),
        ("scan.nii", 'label = 3, size = "1 mm"', "is not there"),
        ("scan.stl", 'label = 3, size = "1 mm"', "use .nrrd, .nii or .nii.gz"),
    ],
)
def test_a_scene_says_what_is_wrong_with_its_part(path, keys, words, tmp_path, capsys):
    (tmp_path / "scan.nrrd").write_bytes(HEADER + DATA)
    (tmp_path / "scene.toml").write_text(SCENE.format(path=path, keys=keys))
    told = ["run", str(tmp_path / "scene.toml"), "--headless", "--lock-step", "--duration", "0.01"]
    assert main(told) == 2
    assert words in capsys.readouterr().err
