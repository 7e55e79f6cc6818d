"""A soft body that touches itself is felt as two bodies that touch, and does not pass through itself."""

import numpy as np
import pytest

from palpo.physics.collision.broadphase import BroadPhase
from palpo.physics.collision.topology import LOW, CollisionShape, join_shapes
from palpo.physics.mesh.generate import block, cylinder
from palpo.physics.mesh.io import write_solid_mesh
from palpo.physics.mesh.tet import TetMesh
from palpo.physics.systems.multirate.lock_step import LockStep
from tests.verification.small_scenes import SKIN, lock_step, proceed, resting, straight

HEIGHT, LEG, SLOT, DEEP = 0.040, 0.006, 0.004, 0.012
"""Of a fork [m]: its height, the thickness of a leg, the slot between the two, and the depth."""
TOP = 0.5 * HEIGHT - 0.006
"""Height at which a finger pushes the left leg to the right, over the middle of the fork."""
WAYS = {"monolithic": (0.012,), "krylov": (0.006, 0.012)}
"""[m] by which the finger pushes the leg, which leans on the other one then."""
FINGER = -(0.5 * SLOT + LEG + 0.003 + SKIN)
"""Where the finger just touches."""

BODY = """
[[bodies]]
name = "{name}"
kind = "tets"
elements = "tet4"
geometry = {{ kind = "file", path = "{path}" }}
material = {{ youngs_modulus = 60e3, poisson_ratio = 0.4, density = 1000, alpha = 0.0, beta = 0.003 }}
fixed = [{{ box = [[-1, -1, -1], [1, -0.0099, 1]] }}]
"""
REST = f"""
[[bodies]]
name = "finger"
kind = "rigid"
rate = "high"
geometry = {{ kind = "box", size = [0.006, 0.004, 0.02] }}
placement = {{ position = [{FINGER}, {TOP}, 0] }}
mass = 0.03

[contact]
max_contacts = 160

[friction]
default = 0

[tool]
body = "finger"
[tool.hold]
orientation = true
stiffness = 800
damping = 2
"""


def part(mesh: TetMesh, kept: np.ndarray) -> TetMesh:
    """Those cells of a mesh."""
    used, cells = np.unique(mesh.cells[kept], return_inverse=True)
    return TetMesh(mesh.nodes[used], cells.reshape(-1, 4).astype(np.int32))


def fork(tmp_path, apart: bool) -> str:
    """A scene of the fork, its foot held up to the bottom of the slot; or of its legs alone, held as far."""
    width = 2 * LEG + SLOT
    mesh = block((width, HEIGHT, DEEP), (8, 12, 3))
    middle = mesh.nodes[mesh.cells].mean(axis=1)
    left, right = middle[:, 0] < -0.5 * SLOT, middle[:, 0] > 0.5 * SLOT
    foot = middle[:, 1] < -0.25 * HEIGHT
    text = 'title = "fork"\ngravity = [0, 0, 0]\n'
    for name, kept in ({"left": left, "right": right} if apart else {"fork": left | right | foot}).items():
        path = tmp_path / f"{name}.vtu"
        write_solid_mesh(path, part(mesh, kept))
        text += BODY.format(name=name, path=path)
    return text + REST


def pushed(run: LockStep, ways: tuple[float, ...]) -> np.ndarray:
    """Forces (k, 3) [N] on the finger, at rest where it has pushed the left leg by each way [m]."""
    at, forces = FINGER, []
    try:
        for way in ways:
            end = (FINGER + way, TOP, 0.0)
            proceed(run, straight((at, TOP, 0.0), end, 200))
            forces.append(proceed(run, resting(end, 300))["force"][-100:].mean(axis=0))
            at = end[0]
        return np.array(forces)
    finally:
        run.close()


@pytest.mark.parametrize("kind", ["monolithic", "krylov"])
def test_two_legs_of_a_fork_are_felt_as_two_bodies(tmp_path, kind):
    """Its foot holds each leg as if it stood alone: alone the left one would push back by half as much."""
    one, two = (pushed(lock_step(fork(tmp_path, apart), kind=kind), WAYS[kind]) for apart in (False, True))
    alone = pushed(
        lock_step(fork(tmp_path, False), "contact.ignore=[['fork','fork']]", kind=kind), WAYS[kind]
    )
    assert np.linalg.norm(alone[-1]) < 0.6 * np.linalg.norm(two[-1])
    np.testing.assert_allclose(one, two, atol=0.01 * np.abs(two).max())


@pytest.mark.parametrize("kind", ["monolithic", "krylov"])
def test_a_free_fork_whose_legs_clap_keeps_its_momentum_and_makes_no_energy(tmp_path, kind):
    """What it does to itself adds up to nothing. Without contact its legs would be one in the other."""
    run = lock_step(fork(tmp_path, False).replace("fixed", "# fixed"), kind=kind)
    body = run.low.members[0].body
    high = body.x[:, 1] > 0.0
    closing = np.zeros_like(body.x)
    closing[high, 0] = -0.6 * np.sign(body.x[high, 0])
    body.v = closing[body.free].ravel()
    begun, scale = body.energy(), float(np.abs(body.M @ body.v).sum())
    legs = [high & (body.mesh.nodes[:, 0] * side > 0) for side in (-1.0, 1.0)]
    inner = [leg & (np.abs(body.mesh.nodes[:, 0]) < 0.5 * SLOT + 1e-6) for leg in legs]
    met, least = 0, np.inf
    for _ in range(150):
        met = max(met, int(proceed(run, resting((FINGER - 0.05, TOP, 0.0), 2))["contacts"].max()))
        least = min(least, float((body.x[inner[1], 0] - body.x[inner[0], 0]).min()))
        linear, angular = body.momentum()
        assert np.abs(linear).max() < 1e-3 * scale
        assert np.abs(angular).max() < 1e-3 * scale * HEIGHT
        assert body.energy() <= begun
    run.close()

    assert met > 0
    assert least > 0.0


def flat_pairs(x: np.ndarray, mesh: TetMesh) -> int:
    """How many pairs of a body with itself a search finds where its nodes are at x [m]."""
    surface = mesh.surface()
    topology, _ = join_shapes(
        [CollisionShape(len(mesh.nodes), surface.triangles, np.zeros((0, 2), np.int32), 0.0, LOW)]
    )
    search = BroadPhase(topology, mesh.nodes.copy(), 1000, 5e-3, 10.0, folding=[0])
    return len(search.find(x, np.zeros_like(x), 0.0, SKIN, 0.02)[0].kind)


@pytest.mark.parametrize("shape", [block((0.06, 0.03, 0.06), (12, 3, 12)), cylinder(0.02, 0.06, 19, 10)])
def test_a_body_without_folds_does_not_meet_itself(shape):
    """However it is stretched, sheared, turned and pressed flat: all of that keeps it convex."""
    rng = np.random.default_rng(7)
    for _ in range(30):
        change = np.linalg.qr(rng.normal(size=(3, 3)))[0] @ np.diag(rng.uniform(0.3, 2.0, 3))
        change = change @ (np.eye(3) + np.diag(rng.uniform(-0.5, 0.5, 2), 1))
        change *= np.sign(np.linalg.det(change))
        assert flat_pairs(shape.nodes @ change.T, shape) == 0
