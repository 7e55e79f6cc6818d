"""Nothing of a state's file is believed unless all of it is as this user's programs wrote it."""

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

import palpo
from palpo.app.library import model, seal
from palpo.app.library.seal import BODY, KEY, MARK, key_file, open_sealed
from palpo.config.words import Refusal
from palpo.physics.numerics import own

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")


@pytest.fixture
def key(tmp_path, monkeypatch):
    """A key of its own, which is not there yet."""
    path = tmp_path / "own" / "key"
    monkeypatch.setenv(KEY, str(path))
    return path


def sealed(path: Path, content: bytes) -> Path:
    with path.open("wb+") as file:
        file.write(bytes(BODY) + content)
        seal.seal(file)
    return path


def opened(path: Path) -> bytes:
    with path.open("rb") as file:
        open_sealed(file, path)
        return file.read()


def test_what_was_sealed_is_read_as_it_was(key, tmp_path):
    content = np.random.default_rng(0).bytes(3 * own.BLOCK + 7)
    assert opened(sealed(tmp_path / "a", content)) == content


def test_a_single_bit_anywhere_breaks_the_seal(key, tmp_path):
    path = sealed(tmp_path / "a", bytes(200))
    whole = path.read_bytes()
    for bit in range(8 * len(whole)):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        with pytest.raises(Refusal):
            opened(path)
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(Refusal):
            opened(path)


def test_the_seal_of_another_key_is_refused_and_that_of_a_shared_one_is_not(key, tmp_path, monkeypatch):
    path = sealed(tmp_path / "a", b"state")
    monkeypatch.setenv(KEY, str(tmp_path / "another"))
    with pytest.raises(Refusal, match=f"another key than that of .*another; set {KEY}"):
        opened(path)
    monkeypatch.setenv(KEY, str(key))
    assert opened(path) == b"state"


@POSIX
def test_a_key_is_its_owner_s_alone(key, tmp_path):
    path = sealed(tmp_path / "a", b"state")
    assert key.stat().st_mode & 0o077 == 0 and len(key.read_bytes()) == seal.LENGTH
    key.chmod(0o640)
    with pytest.raises(Refusal, match="no others' to read"):
        opened(path)


def test_a_key_of_another_length_is_refused(key, tmp_path):
    path = sealed(tmp_path / "a", b"state")
    key.write_bytes(b"short")
    with pytest.raises(Refusal, match="32 bytes"):
        opened(path)


def test_processes_that_make_the_first_key_at_once_agree_on_it(key):
    code = "from palpo.app.library.seal import _key; print(_key().hex())"
    made = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) for _ in range(3)]
    assert len({process.communicate()[0] for process in made}) == 1
    assert list(key.parent.iterdir()) == [key]


def test_where_no_key_can_be_kept_one_lasts_as_long_as_the_process(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")
    monkeypatch.setenv(KEY, str(blocked / "key"))
    path = sealed(tmp_path / "a", b"state")
    assert opened(path) == b"state"
    seal._fleeting.cache_clear()
    with pytest.raises(Refusal):
        opened(path)


def test_the_key_does_not_lie_among_what_may_be_deleted(tmp_path, monkeypatch):
    monkeypatch.delenv(KEY, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert tmp_path / "cache" not in key_file().parents


def test_nothing_of_a_state_that_was_tampered_with_is_looked_at(key, tmp_path, monkeypatch):
    """An archive that is sound in itself, with an index beyond everything, under the seal of the true one."""
    path = tmp_path / "state.palpo"
    head = sealed(path, b"state").read_bytes()[:BODY]
    assert head.startswith(MARK)
    with path.open("wb") as file:
        file.write(head)
        with ZipFile(file, "w") as archive, archive.open("rig.slots.npy", "w") as entry:
            np.save(entry, np.array([10**9]))
    monkeypatch.setattr(model.np, "load", lambda *_, **__: pytest.fail("it was read"))
    with pytest.raises(palpo.Refusal, match="damaged, or was saved with another key"):
        palpo.restore(path)
