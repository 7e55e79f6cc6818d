"""Nothing is believed of a cache unless this user wrote it, and nobody and nothing has changed it since."""

import os
import pickle
import stat
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from palpo.physics.bodies.io import load_cached, store_cached
from palpo.physics.numerics import cache, own
from palpo.physics.numerics.cache import cache_folder
from palpo.physics.numerics.own import KEY, LENGTH, Spoilt, keep, kept, own_folder
from tests.robustness.damaged_caches import tries
from tests.robustness.test_fuzz import damaged, draws

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="owners and permissions of POSIX")
STRANGER = 12345
"""A user who is not this one."""


@pytest.fixture(autouse=True)
def afresh(monkeypatch, tmp_path):
    """Keys and what was told are each process's; here, each test's. Nothing lands in the true folders."""
    own._key_of.cache_clear()
    own.tell.cache_clear()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(cache.tempfile, "gettempdir", lambda: str(tmp_path / "shared"))


def strange(monkeypatch, *paths: Path) -> None:
    """Make files another user's: in fact where we may, else as the program sees it."""
    if os.getuid() == 0:
        for path in paths:
            os.chown(path, STRANGER, STRANGER)
    else:
        monkeypatch.setattr(own.os, "getuid", lambda: STRANGER)


def content(folder: Path, name: str = "a") -> bytes | None:
    file = kept(folder, name)
    if file is None:
        return None
    with file:
        return file.read()


def test_what_was_kept_is_read_as_it_was_and_belongs_to_nobody_else(tmp_path):
    held = np.random.default_rng(0).bytes(3 * own.BLOCK + 7)
    assert content(tmp_path) is None
    assert keep(tmp_path, "a", lambda file: file.write(held))
    assert content(tmp_path) == held
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", KEY]
    if sys.platform != "win32":
        assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in tmp_path.iterdir())


@pytest.mark.filterwarnings("ignore::palpo.physics.numerics.own.Spoilt")
def test_a_single_bit_anywhere_is_a_miss_and_what_is_made_anew_a_hit(tmp_path):
    keep(tmp_path, "a", lambda file: file.write(bytes(range(64))))
    whole = (tmp_path / "a").read_bytes()
    for bit in range(8 * len(whole)):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        (tmp_path / "a").write_bytes(changed)
        assert content(tmp_path) is None
    for length in range(len(whole)):
        (tmp_path / "a").write_bytes(whole[:length])
        assert content(tmp_path) is None
    keep(tmp_path, "a", lambda file: file.write(b"anew"))
    assert content(tmp_path) == b"anew"


def test_damage_is_told_once(tmp_path):
    for name in "ab":
        keep(tmp_path, name, lambda file: file.write(b"0"))
        (tmp_path / name).write_bytes(bytes(LENGTH + 1))
    with pytest.warns(Spoilt, match="what they held is made anew"):
        assert content(tmp_path, "a") is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert content(tmp_path, "b") is None


@POSIX
@pytest.mark.filterwarnings("ignore::palpo.physics.numerics.own.Spoilt")
def test_a_file_that_others_own_or_may_write_is_not_read(tmp_path, monkeypatch):
    path = tmp_path / "a"
    keep(tmp_path, "a", lambda file: file.write(b"0"))
    for mode in (0o620, 0o602):
        path.chmod(mode)
        assert content(tmp_path) is None
    path.chmod(0o600)
    assert content(tmp_path) == b"0"
    strange(monkeypatch, path)
    assert content(tmp_path) is None


@POSIX
@pytest.mark.filterwarnings("ignore::palpo.physics.numerics.own.Spoilt")
def test_a_key_that_others_could_read_seals_nothing(tmp_path):
    keep(tmp_path, "a", lambda file: file.write(b"0"))
    (tmp_path / KEY).chmod(0o640)
    own._key_of.cache_clear()
    assert content(tmp_path) is None
    keep(tmp_path, "a", lambda file: file.write(b"1"))
    own._key_of.cache_clear()
    assert content(tmp_path) == b"1"
    assert stat.S_IMODE((tmp_path / KEY).stat().st_mode) == 0o600


@POSIX
def test_a_folder_of_another_user_is_not_ours_and_one_of_ours_is_closed_to_others(tmp_path, monkeypatch):
    folder = tmp_path / "f"
    folder.mkdir()
    folder.chmod(0o777)
    assert own_folder(folder) == folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755
    folder.chmod(0o777)
    strange(monkeypatch, folder)
    assert own_folder(folder) is None
    assert stat.S_IMODE(folder.stat().st_mode) == 0o777, "nor is it changed"


@POSIX
def test_where_the_home_is_not_ours_a_folder_in_the_shared_one_is_but_never_a_stranger_s(
    tmp_path, monkeypatch
):
    """Somebody else has made all folders that this program would look for, and has put a trap into each."""
    shared = tmp_path / "shared" / f"palpo-{os.getuid()}"
    folders = [tmp_path / "cache" / "palpo" / "kernels", shared]
    folders[0].mkdir(parents=True)
    strange(monkeypatch, folders[0])
    if os.getuid() == 0:
        assert cache_folder("kernels") == shared / "kernels"
        (shared / "kernels").rmdir()
    else:
        shared.mkdir(parents=True)
    strange(monkeypatch, shared)
    assert cache_folder("kernels") is None


@pytest.mark.filterwarnings("ignore::palpo.physics.numerics.own.Spoilt")
def test_a_planted_pickle_is_not_run(tmp_path):
    """The attack: whoever may write a name that is looked for would have their code run at the next start."""
    mark = tmp_path / "mark"

    class Trap:
        def __reduce__(self):
            return Path.touch, (mark,)

    folder = own_folder(tmp_path / "kernels")
    for head in (b"", bytes(LENGTH)):
        (folder / "a").write_bytes(head + pickle.dumps(Trap()))
        file = kept(folder, "a")
        assert file is None or pickle.load(file)
    assert not mark.exists()


@pytest.mark.filterwarnings("ignore::palpo.physics.numerics.own.Spoilt")
def test_arrays_that_were_damaged_are_computed_again(tmp_path):
    held = {"x": np.arange(300.0), "y": np.ones((4, 5))}
    shapes = {name: array.shape for name, array in held.items()}
    store_cached(tmp_path, "k", held)
    whole = (tmp_path / "k.npz").read_bytes()
    for number, rng in draws(9, 200):
        changed = damaged(whole, rng)
        (tmp_path / "k.npz").write_bytes(changed)
        assert (load_cached(tmp_path, "k", shapes) is None) == (changed != whole), number
    store_cached(tmp_path, "k", held)
    found = load_cached(tmp_path, "k", shapes)
    assert all((found[name] == held[name]).all() for name in held)


def test_runs_from_a_damaged_cache_end_well_with_the_same_numbers_and_say_so_once(tmp_path):
    """A few tries of `python -m tests.robustness.damaged_caches 200`."""
    same, said = tries("kernels", 3, seed=2, room=tmp_path)
    assert same == 3 and sum(said) > 1 and max(said) == 1
