"""What does not fit into the machine is refused before it is begun, with both numbers."""

import resource
import subprocess
import sys

import numpy as np
import pytest

from palpo.app.build.quasistatic import quasistatic_body
from palpo.app.runtime import memory
from palpo.config.load import load_scene
from palpo.config.words import Refusal
from palpo.physics.bodies.quasistatic import QuasistaticBody
from palpo.physics.fem.material import Material
from palpo.physics.mesh.generate import hex_block

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")


@LINUX
@pytest.mark.parametrize("limit", [400_000, 700_000])
def test_an_address_space_that_is_too_small_is_a_sentence(limit):
    command = [sys.executable, "-m", "palpo", "run", "probe", "--device", "mock", "--lock-step"]

    def limited():
        resource.setrlimit(resource.RLIMIT_AS, (1024 * limit,) * 2)

    done = subprocess.run(
        command, preexec_fn=limited, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 2
    assert f"{memory.START / 1e9:.1f} GB of address space" in done.stderr and "are left" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_k_and_its_factor_take_no_more_than_was_estimated():
    for divisions in ((4, 4, 4), (8, 6, 6), (20, 4, 4)):
        mesh = hex_block((0.1, 0.1, 0.1), divisions)
        body = QuasistaticBody(
            "block", mesh, Material(1e4, 0.3, 1e3), np.flatnonzero(mesh.nodes[:, 1] < 1e-9 - 0.05)
        )
        taken = body.factor.panels.nbytes + body.K.data.nbytes + body.K.indices.nbytes
        assert taken <= memory.stiffness_bytes(len(mesh.nodes), len(mesh.hexes), 8)
        assert body.boundary.compliance.nbytes == 8 * (3 * len(mesh.boundary_nodes)) ** 2


def test_a_body_larger_than_the_memory_is_refused_before_its_mesh_is_made(monkeypatch):
    spec = load_scene("hapco-soft", ["bodies.finger.geometry.divisions=[158, 5, 10]"])
    told = spec.mobile
    monkeypatch.setattr(memory, "memory_left", lambda: 1_000_000_000)
    monkeypatch.setattr("palpo.physics.mesh.generate.hex_block", lambda *_: pytest.fail("it was begun"))
    with pytest.raises(
        Refusal, match=r"divisions: K\^-1 of 4,842 surface nodes takes about 3.\d\d GB, and 1.00 GB"
    ):
        quasistatic_body(told, "bodies.finger.clamped", spec.gravity)


@LINUX
def test_the_limit_of_a_container_is_what_is_left(tmp_path, monkeypatch):
    limit, taken = tmp_path / "memory.max", tmp_path / "memory.current"
    limit.write_text("2000000\n")
    taken.write_text("1500000\n")
    monkeypatch.setattr(memory, "LIMITS", ((str(limit), str(taken)),))
    assert memory.memory_left() == 500_000
    limit.write_text("max\n")
    assert memory.memory_left() > 500_000


@LINUX
def test_an_address_space_that_is_limited_is_what_is_left():
    code = (
        "import resource; from palpo.app.runtime.memory import memory_left;"
        "resource.setrlimit(resource.RLIMIT_AS, (10**9,) * 2); print(memory_left())"
    )
    left = int(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    )
    assert 0 < left < 10**9
