"""The Delassus operator of a tick against dense inverses of the assembled matrices."""

import numpy as np
import pytest
from numpy.typing import NDArray

from palpo.physics.bodies.chain import chain_assemble
from palpo.physics.bodies.chain_models import ChainState, chain_work
from palpo.physics.collision.topology import LOW, TOOL
from palpo.physics.compliance.hold import apply_hold
from palpo.physics.exchange.buffer import reader_slot
from palpo.physics.systems.multirate.lock_step import LockStep
from tests.verification.small_scenes import (
    BALL_ON_BLOCK,
    BOX_ON_PLANE,
    RIGID_BOX,
    SOFT_BOX,
    lock_step,
    proceed,
    straight,
)

NEEDLE_ON_BLOCK = BALL_ON_BLOCK.replace(
    """kind = "rigid"
rate = "high"
geometry = { kind = "sphere", radius = 0.008 }
placement = { position = [0.003, 0.0088, -0.002] }
mass = 0.03
""",
    """kind = "beam"
rate = "high"
material = "nylon"
geometry.kind = "line"
geometry.start = [-0.021, 0.0025, -0.012]
geometry.end = [0.033, 0.0025, 0.019]
geometry.elements = 4
geometry.radius = 0.002
""",
).replace("orientation = true", 'end = "last"')

BALL_ON_FREE_BOX = BOX_ON_PLANE.replace("[0, 0.5, 0]", "[0.004, 0.0293, 0.003]")

# as near as a contact keeps it: farther contacts are no rows
TOUCHING = BALL_ON_BLOCK.replace("0.0088", "0.0085")
SCENES = {
    "ball on a clamped block": TOUCHING,
    "needle along a clamped block": NEEDLE_ON_BLOCK,
    "ball on a free soft box on a plane": BALL_ON_FREE_BOX.format(box=SOFT_BOX),
    "ball on a free rigid box on a plane": BALL_ON_FREE_BOX.format(box=RIGID_BOX),
}


def dense_tool(run: LockStep, state: ChainState, h: float) -> NDArray[np.float64]:
    """A_h of the tool with its hold, (6 n, 6 n)."""
    high, n = run.high, len(state.x)
    work = chain_work(n)
    chain_assemble(high.held.chain.model, state, h, work)
    apply_hold(high.held.hold, state, h, work)
    out = np.zeros((6 * n, 6 * n))
    for i in range(n):
        out[6 * i : 6 * i + 6, 6 * i : 6 * i + 6] = work.D[i]
    for i in range(n - 1):
        out[6 * i : 6 * i + 6, 6 * i + 6 : 6 * i + 12] = work.U[i]
        out[6 * i + 6 : 6 * i + 12, 6 * i : 6 * i + 6] = work.U[i].T
    return out


def dense_body(body, h: float) -> NDArray[np.float64]:
    """A_h = M + h C + h^2 K of a slow-rate body at its last linearisation."""
    if hasattr(body, "C"):
        return body.M + h * body.C + h * h * body.K
    alpha, beta = body.material.alpha, body.material.beta
    return ((1.0 + h * alpha) * body.M + h * (beta + h) * body.K).toarray()


def skew(a: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


def dense_delassus(run: LockStep, before: ChainState, h: float) -> NDArray[np.float64]:
    """h^2 J A^-1 J^T over the tick's contacts, summed over the bodies."""
    high, scene = run.high, run.scene
    contacts, roles = high.search.found, scene.topology.body_role
    n = int(contacts.count[0]["found"])
    w = np.zeros((3 * n, 3 * n))
    jacobian = np.zeros((3 * n, 6 * len(before.x)))
    jacobians = [np.zeros((3 * n, m.body.n_dof)) for m in scene.members]
    for c in range(n):
        rows, frame = slice(3 * c, 3 * c + 3), contacts.frame[c]
        for side, sign in enumerate((1.0, -1.0)):
            for p, weight in zip(contacts.slots[c, side], contacts.weights[c, side], strict=True):
                if p < 0:
                    continue
                body = scene.topology.point_body[p]
                arm = contacts.arm[c, side]
                if roles[body] == TOOL:
                    k = scene.tool_points.frame[p]
                    arm = high.search.x[p] - before.x[k] + arm
                    jacobian[rows, 6 * k : 6 * k + 3] += sign * weight * frame
                    jacobian[rows, 6 * k + 3 : 6 * k + 6] -= sign * weight * frame @ skew(arm)
                elif roles[body] == LOW:
                    low = [m.number for m in scene.members].index(body)
                    member = scene.members[low]
                    local = np.array([p - member.first])
                    jacobians[low][rows] += sign * weight * frame @ member.body.columns(local).T
    w += h * h * jacobian @ np.linalg.solve(dense_tool(run, before, h), jacobian.T)
    for member, j in zip(scene.members, jacobians, strict=True):
        w += h * h * j @ np.linalg.solve(dense_body(member.body, h), j.T)
    return w


def copied(state: ChainState) -> ChainState:
    return ChainState(*(a.copy() for a in state))


@pytest.mark.parametrize("kind", ["krylov", "paper", "monolithic"])
@pytest.mark.parametrize("name", SCENES)
def test_w_of_a_tick_is_the_dense_reference_symmetric_and_positive(name, kind):
    run = lock_step(SCENES[name], "gravity=[0,0,0]", "interface.shifts=2", kind=kind, latency="none")
    before = copied(run.high.held.tool)
    proceed(run, run.high.port.position[None].copy())
    n = 3 * int(run.high.search.found.count[0]["found"])
    assert n >= 3
    w = run.high.engine.problem.w[: n * n].reshape(n, n)
    expected = dense_delassus(run, before, run.scene.numbers.dt)
    run.close()
    # paper and monolithic: a factorisation's rounding; krylov: columns below 3e-6 of their norm are dropped
    tolerance = 1e-6 if kind == "krylov" else 1e-9
    np.testing.assert_allclose(w, expected, atol=tolerance * np.abs(expected).max())
    np.testing.assert_array_equal(w, w.T)
    assert np.linalg.eigvalsh(w).min() > -1e-12 * np.abs(w).max()


@pytest.mark.parametrize("shifts", [1, 2, 3])
def test_the_reduced_model_has_the_compliance_of_the_full_body_at_every_shift(shifts):
    """Rational Krylov: J V (V^T A_h V)^-1 V^T J^T h^2 interpolates J A_h^-1 J^T h^2 at every shift."""
    run = lock_step(TOUCHING, f"interface.shifts={shifts}", latency="none")
    proceed(run, run.high.port.position[None].copy())
    frame, f = run.high.link.frame, int(reader_slot(run.high.link.frame_control))
    member, numbers = run.scene.members[0], run.scene.numbers
    n_modes = int(frame.mode_body[f, 1])
    loaded = np.unique(run.high.search.found.slots[: run.high.search.found.count[0]["found"], 1])
    loaded = loaded[loaded >= 0]
    modal = frame.slot_modes[f, frame.slot_of[f, loaded], :, :n_modes].reshape(-1, n_modes)
    columns = member.body.columns(loaded - member.first)
    h = numbers.dt
    alpha, beta = member.body.damping
    stiffness = frame.stiffness[f, :n_modes, :n_modes]
    # V^T A_dt V = 1, from which the servo infers V^T M V
    mass = (np.eye(n_modes) - h * (beta + h) * stiffness) / (1.0 + h * alpha)
    steps = [numbers.low_dt, numbers.dt, np.sqrt(numbers.dt * numbers.low_dt)]
    for h in steps[:shifts]:
        reduced = (1.0 + h * alpha) * mass + h * (beta + h) * stiffness
        mine = h * h * modal @ np.linalg.solve(reduced, modal.T)
        full = h * h * columns.T @ np.linalg.solve(dense_body(member.body, h), columns)
        np.testing.assert_allclose(mine, full, atol=1e-8 * np.abs(full).max())
    run.close()


def test_the_violation_at_high_rate_is_that_at_low_rate_with_both_corrections():
    """003, equations (10) to (12), on the frozen rows of the paper's interface; no friction, no turning."""
    run = lock_step(BALL_ON_BLOCK, "friction.default=0", "gravity=[0,-9.81,0]", kind="paper", latency="none")
    start = run.high.port.position.copy()
    proceed(run, straight(start, start - [0, 0.003, 0], 40))
    dt, low_dt = run.scene.numbers.dt, run.scene.numbers.low_dt
    member = run.scene.members[0]
    body = member.body
    body.linearise()
    x_soft = {}
    for h in (dt, low_dt):
        x_soft[h] = body.x.copy()
        x_soft[h][body.free] += h * body.free_velocity(body.factor(h), h).reshape(-1, 3)
    tool_before = run.high.held.tool.x[0].copy()
    proceed(run, start[None] - [0, 0.003, 0])

    high, proxy = run.high, run.low.proxy
    frame, f, n = (
        high.link.frame,
        int(reader_slot(high.link.frame_control)),
        int(high.search.found.count[0]["found"]),
    )
    assert n >= 1

    def tool_free(rate, h):
        """Corrected position less the correction h^2 A^-1 J^T lambda."""
        return rate.held.tool.x[0] - h * h * (rate.held.chain.inverse @ rate.held.chain.pull.reshape(-1))[:3]

    x_stiff, x_proxy = tool_free(high, dt), tool_free(proxy, low_dt)
    assert np.linalg.norm(x_stiff - tool_before) > 0.0
    for c in range(n):
        normal = frame.contact_frame[f, c, 0]
        nodes, weights = frame.contact_points[f, c, 1] - member.first, frame.contact_weights[f, c, 1]
        soft = weights @ (x_soft[dt][nodes] - x_soft[low_dt][nodes])
        expected = proxy.engine.b[3 * c] - normal @ soft + normal @ (x_stiff - x_proxy)
        # lengths of centimetres in 64 bits, through two factorisations of condition 1e4
        assert high.engine.b[3 * c] == pytest.approx(expected, abs=1e-12)
    run.close()
