"""Soft bodies whose stress fades: a Prony series, against closed forms, alone and under the hand."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import palpo
from palpo.config.words import Refusal
from palpo.physics.bodies.held_body import HeldBody
from palpo.physics.bodies.quasistatic import QuasistaticBody
from palpo.physics.bodies.soft import SoftBody
from palpo.physics.fem.material import Material
from palpo.physics.mesh.generate import block
from palpo.physics.numerics.errors import InputError
from tests.verification.small_scenes import BALL_ON_BLOCK, lock_step, resting, small_scene, straight
from tests.verification.test_elements import mesh_of

PRONY = ((0.3, 0.05), (0.4, 0.5))
SIZE = (0.06, 0.05, 0.04)
STILL = (0.0, 0.0, 0.0)
KINDS = pytest.mark.parametrize(
    ("law", "shape", "elements"),
    [
        ("linear", (), "tet4"),
        ("linear", (), "tet4-patch"),
        ("linear", (), "tet10"),
        ("fung", (1.0,), "tet4-patch"),
    ],
)


def modulus(t, prony=PRONY):
    """G(t) / G(0)."""
    return 1.0 - sum(g * (1.0 - np.exp(-np.asarray(t) / tau)) for g, tau in prony)


def pair(law, shape, elements, **more):
    """A body that remembers and one of the same law that does not."""
    made = []
    for prony in (PRONY, ()):
        material = Material(2e4, 0.4, 1000.0, law=law, shape=shape, prony=prony, **more)
        made.append(SoftBody("block", mesh_of(elements), material, np.arange(3), STILL, elements=elements))
    return made


def bent(body: SoftBody, size: float = 2e-3) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(body.free.size, 3)) * size


@KINDS
@pytest.mark.parametrize("turned", [False, True])
def test_held_in_shape_all_forces_fade_as_the_series_says(law, shape, elements, turned):
    """To rounding, whatever the steps, the law and the element; and they turn with the body."""
    body, elastic = pair(law, shape, elements)
    body.x[body.free] += bent(body)
    body.remember(0.0)
    for h in (0.002, 0.05, 0.3, 0.648):
        body.remember(h)
    turn = Rotation.from_rotvec([0.3, -1.1, 0.7]).as_matrix() if turned else np.eye(3)
    elastic.x[:] = body.x @ turn.T
    body.x[:] = elastic.x
    if turned:
        body.linearise()
    expected = modulus(1.0) * elastic.undamped_force()
    assert np.abs(body.undamped_force() - expected).max() < 1e-12 * np.abs(expected).max()


@KINDS
def test_the_force_is_the_slope_of_the_potential_and_the_stiffness_its_share(law, shape, elements):
    """While the memory is as it is; what turns with the elements keeps its moment in the shape remembered."""
    body, elastic = pair(law, shape, elements)
    body.x[body.free] += bent(body)
    body.remember(0.0)
    body.remember(0.1)
    body.look_ahead(0.03)
    way, step, at = np.random.default_rng(6).normal(size=body.x.shape), 1e-5 * SIZE[0], body.x.copy()
    way[body.fixed] = 0.0
    force, energies = body.undamped_force(), []
    for sign in (1.0, -1.0):
        body.x = at + sign * step * way
        energies.append(body.energy())
    slope = (energies[0] - energies[1]) / (2.0 * step)
    assert -force @ way[body.free].ravel() == pytest.approx(slope, rel=1e-6)
    body.x = at
    elastic.x[:] = at
    share = 1.0 - sum(g * (1.0 - tau / 0.03 * (1.0 - np.exp(-0.03 / tau))) for g, tau in PRONY)
    left = body.tangent() - share * elastic.tangent()
    assert np.abs(left).max() < 1e-12 * np.abs(elastic.tangent()).max()


@pytest.mark.parametrize("h", [0.02, 0.01])
def test_a_load_that_stays_is_yielded_to_as_in_the_closed_form(h):
    """One branch: 1 + g / (1 - g) (1 - e^(-(1 - g) t / tau)) of the first deflection. Steps err by the order
    of h over that time, 0.8 s."""
    g, tau = 0.5, 0.4
    mesh = block(SIZE, (2, 2, 2))
    low = np.flatnonzero(mesh.nodes[:, 1] < -0.0249)
    body = SoftBody("bar", mesh, Material(2e5, 0.3, 1.0, prony=((g, tau),)), low, STILL)
    load = np.zeros_like(mesh.nodes)
    top = mesh.nodes[:, 1] > 0.0249
    load[top, 1] = 1e-3
    told = []
    for _ in range(round(2.4 / h)):
        body.linearise()
        factor = body.factor(h)
        body.advance(body.free_velocity(factor, h, load[body.free].ravel()), h)
        told.append((body.x - mesh.nodes)[top, 1].mean())
    t = h * (1 + np.arange(len(told)))
    linear = SoftBody("bar", mesh, Material(2e5, 0.3, 1.0), low, STILL)
    linear.linearise()
    still = np.linalg.solve(linear.K.toarray(), load[linear.free].ravel()).reshape(-1, 3)
    first = still[np.isin(linear.free, np.flatnonzero(top)), 1].mean()
    exact = first * (1.0 + g / (1.0 - g) * (1.0 - np.exp(-(1.0 - g) * t / tau)))
    assert np.abs(told - exact).max() < 0.3 * h / 0.8 * exact.max()


@pytest.mark.parametrize("steps", [1, 7])
def test_a_strain_that_grows_evenly_is_followed_without_error(steps):
    """Integral of G, to rounding, by steps of any size: the recursion is exact for it."""
    body, elastic = pair("linear", (), "tet4")
    ends, before = np.sort(np.append(np.random.default_rng(5).uniform(0.0, 1.3, steps - 1), 1.3)), 0.0
    for t in ends:
        body.x[:] = body.mesh.nodes * (1.0 + 0.1 * t * np.array([1.0, -0.3, 0.5]))
        body.remember(t - before)
        before = t
    elastic.x[:] = elastic.mesh.nodes * (1.0 + 0.1 * np.array([1.0, -0.3, 0.5]))
    whole = 1.3 - sum(g * (1.3 - tau * (1.0 - np.exp(-1.3 / tau))) for g, tau in PRONY)
    expected = whole * elastic.undamped_force()
    assert np.abs(body.undamped_force() - expected).max() < 1e-12 * np.abs(expected).max()


def test_no_path_gives_back_more_than_was_put_in():
    """Work done on the body, from rest, is never less than what its elastic part alone would store, on random
    paths with steps from far below to far above the times."""
    body, elastic = pair("linear", (), "tet4-patch")
    rng = np.random.default_rng(3)
    work, least, largest, speed = 0.0, 0.0, 0.0, np.zeros((body.free.size, 3))
    for _ in range(400):
        before = body.x.copy()
        speed += (
            rng.normal(size=speed.shape) * 2e-5 - 0.05 * speed - 0.02 * (body.x - body.mesh.nodes)[body.free]
        )
        body.x[body.free] += speed
        body.remember(10.0 ** rng.uniform(-3.0, 0.5))
        work -= float(body.undamped_force() @ (body.x - before)[body.free].ravel())
        elastic.x[:] = body.x
        stored = modulus(np.inf) * elastic.energy()
        least, largest = min(least, work - stored), max(largest, work)
    assert largest > 0.0 and least > -1e-9 * largest


def test_a_memory_far_shorter_than_a_step_neither_rings_nor_grows():
    """An explicit memory of 0.1 ms would not survive a step of 20 ms; here the body settles."""
    mesh = block(SIZE, (2, 2, 2))
    low = np.flatnonzero(mesh.nodes[:, 1] < -0.0249)
    material = Material(2e4, 0.4, 1000.0, 2.0, prony=((0.5, 1e-4), (0.45, 1e-3)))
    body = SoftBody("block", mesh, material, low, STILL)
    body.x[body.free] += bent(body)
    size = [np.abs(body.x - mesh.nodes).max()]
    for _ in range(300):
        body.linearise()
        body.advance(body.free_velocity(body.factor(0.02), 0.02), 0.02)
        size.append(np.abs(body.x - mesh.nodes).max())
    assert max(size) <= size[0] and size[-1] < 1e-3 * size[0]


TOLD = "bodies.block.material.prony=[{ratio=0.3,time=0.1},{ratio=0.3,time=0.6}]"
SERIES = ((0.3, 0.1), (0.3, 0.6))
STIFF = ("tool.hold.stiffness=50000", "tool.hold.damping=100", "rates.low_hz=50")
ABOVE, PRESSED = (0.003, 0.0088, -0.002), (0.003, 0.0058, -0.002)


def felt(kind: str, *overrides: str, rest: int = 900) -> np.ndarray:
    """Force in the hand (n,) [N] while a ball is pressed into a block within 40 ms and held there."""
    run = lock_step(BALL_ON_BLOCK, *overrides, kind=kind)
    trace = run.run(np.vstack([straight(ABOVE, PRESSED, 40), resting(PRESSED, rest)]))
    run.close()
    assert len(trace["force"]) == 40 + rest, run.broken
    return trace["force"][:, 1]


@pytest.mark.parametrize("kind", ["krylov", "monolithic"])
def test_a_hand_that_stays_feels_the_force_fade_as_the_series_says(kind):
    """The shape stays, so that all stress fades alike and the force with it, whatever touches. To 1% of the
    first force, of which the hold yields half. The press of 40 ms counts from its middle."""
    elastic, faded = felt(kind, *STIFF, rest=300)[-1], felt(kind, *STIFF, TOLD)
    t = 1e-3 * (np.arange(len(faded)) - 20.0)
    assert np.abs(faded / elastic - modulus(t, SERIES))[t > 0.06].max() < 0.01


@pytest.mark.parametrize("solver", ["direct", "multigrid"])
def test_both_rates_feel_as_one(solver):
    """By a soft hold, which moves as the body yields. From the first frame on that was made after the press a
    model's force fades evenly in a period T: that errs by T^2 / 8 of the series' second derivative, 0.2% of
    the peak; before it by half of what fades in a period, 2%."""
    both, one = (felt(kind, TOLD, f'bodies.block.solver="{s}"') for kind, s in
                 (("krylov", solver), ("monolithic", "direct")))  # fmt: skip
    error = np.abs(both - one) / np.abs(one).max()
    assert error.max() < 0.02
    assert error[100:].max() < 0.003


def test_what_a_body_remembers_is_in_its_state(tmp_path):
    """A copy that is saved and restored while the force fades goes on bit by bit."""
    told = {"bodies.block.material.prony": [{"ratio": 0.6, "time": 0.3}]}
    (tmp_path / "scene.toml").write_text(
        BALL_ON_BLOCK + "\n[device]\npath = [[0, 0.003, 0.0088, -0.002], "
        "[0.05, 0.003, 0.0058, -0.002], [9, 0.003, 0.0058, -0.002]]\n"
    )
    state = palpo.load(tmp_path / "scene.toml", told).build().start()
    state.step(200)
    again = palpo.restore(state.save(tmp_path / "state.palpo"))
    one, other = state.step(300).force, again.step(300).force
    assert np.abs(one[:, 1]).max() > 0.1 and np.array_equal(one, other)
    assert one[-1, 1] < 0.9 * one[0, 1]


@pytest.mark.parametrize(
    ("terms", "said"),
    [
        ("[{ratio=0.6,time=1},{ratio=0.4,time=2}]", "material.prony: the ratios must be below 1 together"),
        ("[{ratio=0,time=1}]", r"material.prony\[0\].ratio = 0 is too small; it must be above 0"),
        ("[{ratio=0.5,time=0}]", r"material.prony\[0\].time = 0 is too small; it must be above 0"),
        ("[{ratio=0.5}]", r"material.prony\[0\].time: the key is missing"),
        (
            "[{ratio=0.5,time='1 mm'}]",
            r'material.prony\[0\].time = "1 mm" is a length where a time is needed',
        ),
    ],
)
def test_a_series_that_is_none_is_refused_by_its_key(terms, said):
    with pytest.raises(Refusal, match=said):
        small_scene(BALL_ON_BLOCK, f"bodies.block.material.prony={terms}")


def test_bodies_that_remember_nothing_refuse_a_series():
    material, mesh = Material(2e4, 0.3, 1000.0, prony=PRONY), block(SIZE, (1, 1, 1))
    for body in (QuasistaticBody, HeldBody):
        with pytest.raises(InputError, match="remembers nothing"):
            body("block", mesh, material, np.arange(4))
    for prony, said in ((((0.7, 1.0), (0.3, 2.0)), "below 1 together"), (((0.5, 0.0),), "positive ones")):
        with pytest.raises(InputError, match=said):
            Material(2e4, 0.3, 1000.0, prony=prony)
