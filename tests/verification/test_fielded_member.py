"""A soft body that walls a cavity: its volume's row in the full body, and in models that the servo gets."""

import numpy as np
import pytest

from palpo.physics.bodies.soft import SoftBody
from palpo.physics.contract.stages import ADOPT, BEGIN, CLEAR, DELASSUS, END, FIELD, FREE, PLACE, PUSH, Body
from palpo.physics.systems.multirate.low_rate import LowRate
from palpo.physics.systems.multirate.member import Member
from palpo.physics.systems.multirate.scene import Scene
from tests.contact.test_delassus import dense_body
from tests.engine.test_modal_kind import Loop
from tests.verification.small_scenes import BALL_ON_BLOCK, small_scene

HEAD, BLOCK, BALL = BALL_ON_BLOCK.partition("[[bodies]]")[0], *BALL_ON_BLOCK.split("[[bodies]]")[1:]
REST = BALL[BALL.index("[friction]") :]
# the block is the last body, so that its fields can be the scene's last points
CLAMPED = f"{HEAD}[[bodies]]{BALL[: BALL.index('[friction]')]}[[bodies]]{BLOCK}{REST}"
FREE_BLOCK = "\n".join(line for line in CLAMPED.splitlines() if not line.startswith("fixed"))
FIELDS = 2


def walled(text: str, *overrides: str) -> Scene:
    """A small scene whose last body has two fields, of random walls."""
    scene = small_scene(text, *overrides)
    (member,) = scene.members
    last = scene.topology.point_body[-1:]
    scene.topology = scene.topology._replace(
        point_body=np.append(scene.topology.point_body, np.repeat(last, FIELDS))
    )
    scene.rest = np.vstack([scene.rest, np.zeros((FIELDS, 3))])
    scene.capacity = scene.capacity._replace(points=len(scene.rest))
    plain = member.body
    fielded = SoftBody(plain.name, plain.mesh, plain.material, plain.fixed, plain.gravity, fields=FIELDS)
    scene.members[0] = Member(fielded, member.number, member.first)
    rng = np.random.default_rng(9)
    surface = member.body.mesh.surface().used_vertices
    slopes = rng.standard_normal((FIELDS, 4, 3))
    smooth = np.column_stack([np.ones(len(surface)), 50.0 * member.body.x[surface]])
    fielded.wall[:, surface] = 1e-5 * smooth @ slopes
    fielded.volume[:] = 1e-6, 2e-6
    return scene


@pytest.fixture
def loop(request, monkeypatch):
    """The servo's kind for that body, with a first frame that carries its fields."""
    text, kind = request.param
    monkeypatch.setattr("tests.engine.test_modal_kind.small_scene", walled)
    made = Loop(text, kind)
    member = made.member
    low: LowRate = made.low
    low.attached = np.arange(member.first + member.body.nodes, member.first + member.count, dtype=np.int32)
    member.body.v[:] = 1e-6 * np.random.default_rng(4).standard_normal(member.body.v.shape)
    made.send()
    yield made
    low.close()


CASES = [(text, kind) for text in (CLAMPED, FREE_BLOCK) for kind in ("krylov", "monolithic")]
NAMES = [f"{body} {kind}" for body in ("clamped", "free") for kind in ("krylov", "monolithic")]


def ask_of_fields(loop: Loop) -> Body:
    """The servo's kind with the frame, and a batch of the two fields, each in a block of its own."""
    servo, batch, member = loop.body(), loop.batch, loop.member
    loop.ask(servo, ADOPT)
    batch.count[0] = FIELDS
    for k in range(FIELDS):
        batch.what[k], batch.block[k] = FIELD, k
        batch.slots[k] = member.first + member.body.nodes + k, 0, 0
        batch.weights[k], batch.axes[k] = (1, 0, 0), np.diag([1, 0, 0])
    return servo


@pytest.mark.parametrize("loop", CASES, ids=NAMES, indirect=True)
def test_wall_yields_as_that_of_the_full_body(loop):
    """W_pp = h^2 H_p A_h^-1 H_p^T of two fields, and the free change of their volumes."""
    servo, member, batch, h = ask_of_fields(loop), loop.member, loop.batch, loop.h
    loop.problem.rows[:] = 0, 3 * FIELDS
    loop.ask(servo, BEGIN)
    loop.ask(servo, FREE)
    loop.ask(servo, DELASSUS)
    walls = member.body.columns(np.arange(member.body.nodes, member.count))[:, ::3]
    body = member.body
    expected = h**2 * walls.T @ np.linalg.solve(dense_body(body, h), walls)
    got = loop.problem.w[: 9 * FIELDS**2].reshape(3 * FIELDS, 3 * FIELDS)[::3, ::3]
    # krylov: columns below 3e-6 of their norm are dropped
    np.testing.assert_allclose(np.tril(got), np.tril(expected), atol=1e-5 * np.abs(expected).max())
    free = body.free_velocity(body.factor(h), h)
    np.testing.assert_allclose(batch.d[:FIELDS, 0], h * walls.T @ free, rtol=1e-4)


@pytest.mark.parametrize("loop", CASES[::2], ids=NAMES[::2], indirect=True)
def test_volumes_change_by_what_their_walls_sweep(loop):
    """Unpushed, in a tick: by deforming and, of a body that floats, by its rigid motion too."""
    servo, body, batch, h = ask_of_fields(loop), loop.member.body, loop.batch, loop.h
    loop.ask(servo, PLACE)
    before = batch.x[:FIELDS, 0].copy()
    for stage in (BEGIN, FREE, CLEAR, PUSH, END, PLACE):
        loop.ask(servo, stage)
    body.advance(body.free_velocity(body.factor(h), h), h)
    swept = h * body.velocities()[body.nodes :, 0]
    # as the free change above; a volume of 2e-6 m3 is known to some 1e-22
    np.testing.assert_allclose(batch.x[:FIELDS, 0] - before, swept, rtol=1e-4)


def test_the_power_of_a_pressure_is_that_of_the_volume():
    """Force and field are each other's transpose: p dV/dt is the power of the forces."""
    (member,) = walled(CLAMPED).members
    rng = np.random.default_rng(6)
    member.body.v[:] = rng.standard_normal(member.body.v.shape)
    local = np.array([3, 40, member.body.nodes, member.body.nodes + 1])
    forces = rng.standard_normal((4, 3))
    power = member.body.applied(local, forces) @ member.body.v
    assert power == pytest.approx(member.body.gather(local, member.body.v[:, None])[:, 0] @ forces.ravel())
    volumes = member.body.velocities()[member.body.nodes :, 0]
    np.testing.assert_allclose(
        volumes, np.einsum("kni,ni->k", member.body.wall, member.body.node_velocities())
    )


def test_a_pull_is_the_force_and_moment_of_a_unit_pressure():
    (member,) = walled(FREE_BLOCK).members
    centre = np.array([0.01, -0.02, 0.03])
    axes = np.linalg.qr(np.random.default_rng(2).standard_normal((3, 3)))[0]
    pulls = member.body.pulls(np.array([5, member.body.nodes, member.body.nodes + 1]), centre, axes)
    assert not pulls[0].any()
    for pull, wall in zip(pulls[1:], member.body.wall, strict=True):
        np.testing.assert_allclose(axes @ pull[:3], wall.sum(axis=0))
        np.testing.assert_allclose(axes @ pull[3:], np.cross(member.body.x - centre, wall).sum(axis=0))
