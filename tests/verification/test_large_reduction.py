"""The reduced models of a body without factors: what the servo feels of it is what the whole body does."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from palpo.physics.bodies.soft import SoftBody
from palpo.physics.bodies.soft_points import rigid_motions
from palpo.physics.fem.material import Material
from palpo.physics.mesh.liver import liver
from palpo.physics.reduction.large_reduction import PATCHES, ROUGH, LargeReduction, between, patch_loads
from palpo.studies.runs import SceneDrive, legs

ALPHA, BETA = 2.0, 8e-3
SHIFTS = [1e-3, 1e-1]


def reduction_over(count: int, held: bool = True) -> tuple[LargeReduction, np.ndarray]:
    """A liver held below, or free, and the model's columns over the `count` points about its top."""
    mesh = liver(0.15, 0.009)
    below = np.flatnonzero(mesh.nodes[:, 1] < -0.02) if held else ()
    body = SoftBody(
        "liver", mesh, Material(5e3, 0.45, 1060.0, ALPHA, BETA), below, (0.0, 0.0, 0.0), solver="multigrid"
    )
    surface = mesh.boundary_nodes
    top = surface[np.argmax(mesh.nodes[surface, 1])]
    near = surface[np.argsort(np.linalg.norm(mesh.nodes[surface] - mesh.nodes[top], axis=1))[:count]]
    reduction = LargeReduction(body, SHIFTS, 3 * count)
    with ThreadPoolExecutor(2) as pool:
        for _ in range(2):  # columns go on where the last slow step left them
            reduction.prepare(near.astype(np.intp), pool)
            reduction.solve(pool)
    return reduction, near


def servo_columns(reduction: LargeReduction) -> np.ndarray:
    """Those at the servo's step, on all freedoms of the body."""
    whole = np.zeros((reduction.body.n_dof, reduction._points.shape[1]))
    whole[reduction.window.freedoms] = reduction._points
    return whole


def response_errors(
    reduction: LargeReduction, near: np.ndarray, basis: np.ndarray, steps: list[float]
) -> list[float]:
    """Of J A_h^-1 J^T at those points by a Galerkin model on `basis`, in the spectral norm."""
    body = reduction.body
    load = reduction.body.columns(near)
    body.linearise()
    unit, _ = np.linalg.qr(basis / np.linalg.norm(basis, axis=0))
    mass, stiffness = unit.T @ (body.M @ unit), unit.T @ (body.K @ unit)
    out = []
    for h in steps:
        exact = load.T @ body.factor(h).solve_many(load)
        seen = load.T @ unit
        model = seen @ np.linalg.solve((1.0 + ALPHA * h) * mass + h * (BETA + h) * stiffness, seen.T)
        out.append(float(np.linalg.norm(exact - model, 2) / np.linalg.norm(exact, 2)))
    return out


def test_points_respond_as_the_whole_body_at_every_step_between() -> None:
    reduction, near = reduction_over(12)
    steps = [1e-3, 3e-3, 1e-2, 3e-2, 1e-1]
    columns, (long, middle) = servo_columns(reduction), reduction._patches
    whole = response_errors(reduction, near, np.hstack([columns, long, middle]), steps)
    ends = response_errors(reduction, near, np.hstack([columns, long]), steps)
    # columns of residual 0.1 err by some hundredths, a model by the square of that
    assert max(whole) < 0.02
    # a Galerkin model on more columns is no worse, and one step between is what the two ends lack
    assert all(a <= b + 1e-6 for a, b in zip(whole, ends, strict=True))
    assert max(ends) > 1.5 * max(whole)


def test_points_that_stay_begin_where_they_were() -> None:
    reduction, near = reduction_over(12)
    with ThreadPoolExecutor(1) as pool:
        before = servo_columns(reduction)
        reduction.prepare(near[::-1].astype(np.intp), pool)
        reduction.solve(pool)
    known = {int(dof): i for i, dof in enumerate(reduction.known)}
    dofs = reduction.body.dofs_of(near).reshape(-1)
    again = servo_columns(reduction)[:, [known[int(dof)] for dof in dofs]]
    # solved to a tenth already: nothing is left to do
    assert (again == before).all()


def test_a_column_reaches_no_farther_than_its_window_sees() -> None:
    """Of a unit load's energy e^T A^-1 e at the servo's step ROUGH^2 is missed, twice that by the window."""
    reduction, near = reduction_over(12)
    body = reduction.large
    assert len(reduction.window.nodes) < 0.6 * len(body.free)
    load = reduction.body.columns(near)
    place = {int(dof): i for i, dof in enumerate(reduction.known)}
    columns = servo_columns(reduction)[:, [place[int(dof)] for dof in body.dofs_of(near).reshape(-1)]]
    factor = body.factor(SHIFTS[0])
    off = factor.solve_many(load) - columns
    missed = [off[:, k] @ factor.product(off[:, k]) for k in range(load.shape[1])]
    energy = (load * factor.solve_many(load)).sum(axis=0)
    assert (np.array(missed) < 3.0 * ROUGH**2 * energy).all()


@pytest.mark.parametrize("held", [True, False])
def test_products_by_parts_are_those_of_the_whole_basis(held: bool) -> None:
    """Columns on a window and columns everywhere; without its rigid motions where the body floats."""
    reduction, _ = reduction_over(12, held)
    body, mass = reduction.large, reduction.mass
    tail = np.random.default_rng(1).normal(size=(body.n_dof, 3))
    rigid = None if held else rigid_motions(body.x[body.free])
    with ThreadPoolExecutor(2) as reduction._pool:
        basis, gram = reduction._present_basis(tail, rigid, 0)
        _, stiffness = reduction._pulled(body.tangent_blocks(), basis)
    exact, tangent = basis.T @ (mass[:, None] * basis), basis.T @ (body.tangent() @ basis)
    assert np.abs(gram - exact).max() < 1e-12 * np.abs(exact).max()
    assert np.abs(stiffness - tangent).max() < 1e-12 * np.abs(tangent).max()
    if rigid is not None:
        across = np.abs((mass[:, None] * rigid).T @ basis)
        reach = np.sqrt(np.outer(mass @ rigid**2, exact.diagonal()))
        assert (across < 1e-9 * reach).all()


def test_patch_loads_are_the_polynomials_of_the_plane_of_the_points() -> None:
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    plane = rng.uniform(-1.0, 1.0, (40, 2))
    x = 0.01 * plane @ axes[:2] + [1.0, 2.0, 3.0]
    loads = patch_loads(x, 2)
    assert loads.shape == (40, PATCHES // 3)
    assert np.allclose(loads.T @ loads, np.eye(6), atol=1e-12)
    a, b = plane.T
    for field in (np.ones(40), a, b, a * a, a * b, b * b):
        assert np.allclose(loads @ (loads.T @ field), field, atol=1e-9)
    assert np.linalg.norm(a**3 - loads @ (loads.T @ a**3)) > 1e-2


def test_few_points_have_no_more_loads_than_they_can_tell_apart() -> None:
    line = np.outer(np.arange(9.0), [1.0, 2.0, 0.5])
    assert patch_loads(line, 2).shape == (9, 3)
    assert patch_loads(line[:1], 2).shape == (1, 1)
    assert patch_loads(line[:2], 2).shape == (2, 2)
    assert patch_loads(line[:0], 2).shape == (0, 0)


@pytest.mark.parametrize(("alpha", "beta"), [(0.0, 0.0), (2.0, 8e-3), (50.0, 0.0)])
def test_the_step_between_outweighs_by_the_geometric_mean(alpha: float, beta: float) -> None:
    def weight(h: float) -> float:
        return h * (beta + h) / (1.0 + alpha * h)

    middle = between(*SHIFTS, alpha, beta)
    assert SHIFTS[0] < middle < SHIFTS[1]
    assert np.isclose(weight(middle) ** 2, weight(SHIFTS[0]) * weight(SHIFTS[1]))


def test_a_liver_pressed_and_stroked_feels_as_with_everything_at_1_khz() -> None:
    path = legs(
        (0.0, -0.035, 0.0722, 0.0),
        (0.6, -0.035, 0.0668, 0.0),
        (0.1, -0.035, 0.0668, 0.0),
        (0.3, -0.032, 0.0668, 0.0),
    )
    mesh, same = "bodies.liver.geometry.spacing=12.5 mm", "bodies.liver.elements=tet4"
    with SceneDrive("organ", [mesh, same], "monolithic") as exact:
        exact.go(path)
    with SceneDrive("organ", [mesh, same, 'bodies.liver.solver="multigrid"']) as ours:
        assert ours.lock.scene.members[0].body.hierarchy is not None
        ours.go(path)
    force, reference = ours.trace["force"], exact.trace["force"]
    peak = np.linalg.norm(reference, axis=1).max()
    assert peak > 0.1
    # frames are a tenth to a fifth of a second old; the hand moves 9 mm/s
    assert np.sqrt(((force - reference) ** 2).sum(axis=1).mean()) < 0.01 * peak
