"""Files that announce more than they hold are refused before it is asked of the machine."""

from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import h5py
import numpy as np
import pytest
from numpy.lib.format import write_array_header_1_0

from palpo.haptics.errors import HapticsError
from palpo.haptics.recording import FORMAT, read_recording
from palpo.physics.bodies.io import read_body
from palpo.physics.contact.io import read_guess, read_problem
from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.stored import EXPANDS, SMALL, read_archive

ROWS = 20_000_000


def never_filled(file):
    for k in range(3):
        file.create_dataset(f"servo/c{k}", (ROWS,), "f8", chunks=(1024,))


def packed(file):
    file.create_dataset("servo/c", data=np.zeros(ROWS // 8), chunks=(2**16,), compression="gzip")


def one_vast_chunk(file):
    file.create_dataset("servo/c", (10,), "f8", maxshape=(None,), chunks=(ROWS,), compression="gzip")


def under_many_names(file):
    data = file.create_dataset("servo/c", data=np.zeros(SMALL // 16))
    for k in range(400):
        file[f"servo/d{k}"] = data


def linked(file):
    file["servo/c"] = h5py.ExternalLink("/dev/zero", "/c")


def outside(file):
    file.create_dataset("servo/c", (ROWS,), "f8", external=[("/dev/zero", 0, 8 * ROWS)])


def virtual(file):
    layout = h5py.VirtualLayout((ROWS,), "f8")
    layout[:10] = h5py.VirtualSource("elsewhere.h5", "c", (10,))
    file.create_virtual_dataset("servo/c", layout)


BOMBS = (never_filled, packed, one_vast_chunk, under_many_names, linked, outside, virtual)
WORDS = "too many to be true|not followed|not read"


@pytest.fixture
def hdf5(tmp_path, request):
    path = tmp_path / "bomb.h5"
    with h5py.File(path, "w") as file:
        file.attrs["format"] = FORMAT
        file.attrs["meta"] = np.bytes_(b"{}")
        for group in ("low_steps", "events", "changes"):
            file.create_group(group)
        file["closed"] = np.ones(1)
        request.param(file)
    return path


@pytest.mark.parametrize("hdf5", BOMBS, indirect=True)
def test_a_recording_that_announces_more_than_it_holds_is_refused(hdf5):
    with pytest.raises(HapticsError, match=WORDS):
        read_recording(hdf5)


@pytest.mark.parametrize("hdf5", BOMBS, indirect=True)
def test_problems_guesses_and_bodies_that_do_are_refused(hdf5):
    with pytest.raises(InputError, match=WORDS):
        read_problem(hdf5)
    with pytest.raises(InputError):
        read_guess(hdf5, 3)
    with h5py.File(hdf5, "a") as file:
        file.attrs["format"] = "palpo-body"
    with pytest.raises(InputError, match=WORDS):
        read_body(hdf5)


def archive_of(path: Path, shape: tuple[int, ...], data: bytes) -> Path:
    with ZipFile(path, "w", ZIP_DEFLATED) as archive, archive.open("W.npy", "w") as entry:
        write_array_header_1_0(entry, {"descr": "<f8", "fortran_order": False, "shape": shape})
        entry.write(data)
    return path


@pytest.mark.parametrize(("shape", "length"), [((ROWS,), 8), ((3,), 16), ((-1,), 8), ((2**40, 2**40), 8)])
def test_an_array_that_is_not_as_long_as_its_header_says_is_refused(tmp_path, shape, length):
    with pytest.raises(ValueError, match="not what it holds"):
        read_archive(archive_of(tmp_path / "a.npz", shape, bytes(length)))


def test_an_archive_of_zeros_is_refused_and_one_of_numbers_is_not(tmp_path):
    many = SMALL // 4
    path = archive_of(tmp_path / "zeros.npz", (many,), bytes(8 * many))
    assert 8 * many > SMALL + EXPANDS * path.stat().st_size
    with pytest.raises(ValueError, match="too many to be true"):
        read_archive(path)
    numbers = np.random.default_rng(0).normal(size=many)
    read = read_archive(archive_of(tmp_path / "numbers.npz", (many,), numbers.tobytes()))
    assert np.array_equal(read["W"], numbers)
    with pytest.raises(InputError):
        read_problem(path)
