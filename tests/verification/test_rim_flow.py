"""Air under a rim: flow between rings, networks of any range of conductances, what it does to cavities."""

import numpy as np
import pytest

from palpo.physics.bodies.held_body import HeldBody
from palpo.physics.fem.material import Material
from palpo.physics.gas.flood import OUTSIDE, RING, thresholds
from palpo.physics.gas.law import OutsideAir, leak, slot_conductance
from palpo.physics.gas.pressure import advance, begin, finish, make_gas, make_workspace
from palpo.physics.gas.rim_flow import contact_pressures, rim_conductances, sheets_of
from palpo.physics.gas.roughness import RoughSurface, contact_gap, seal_of
from palpo.physics.gas.wall_regions import walls_of_regions
from palpo.physics.mesh.cups import CUPS, GRIDS, POISSON_RATIO, cup
from palpo.physics.mesh.partners import slab
from palpo.physics.suction.cup_spec import CupSpec
from palpo.physics.suction.sides import FixedSide
from palpo.physics.systems.suction.step import Suction

AIR = OutsideAir(largest=np.inf)
SEAL = seal_of(RoughSurface(10e-6, 500e-6), 1e6)


def annulus(across, around, inner=10e-3, outer=14e-3):
    """A flat ring (points, triangles) whose innermost circle is cavity 0's and whose outermost is outside."""
    radii = np.geomspace(inner, outer, across + 1)
    angles = np.arange(around) * 2 * np.pi / around
    x = np.array([[r * np.cos(a), 0.0, r * np.sin(a)] for r in radii for a in angles])
    i, j = np.divmod(np.arange(across * around), around)
    p, q = i * around + j, i * around + (j + 1) % around
    triangles = np.concatenate([np.stack([p, q, q + around], 1), np.stack([p, q + around, p + around], 1)])
    holder = np.full(len(x), RING)
    holder[:around], holder[-around:] = 0, OUTSIDE
    return x, triangles, holder


def conductances(x, triangles, holder, sheet, cavities=1, seeping=None):
    n = len(x) + cavities + 1
    out = np.zeros((cavities + 1, cavities + 1))
    work = np.zeros(n * n), np.zeros((3, n), np.int64)
    seeping = np.zeros(len(x)) if seeping is None else seeping
    rim_conductances(triangles, x, holder, sheet, seeping, work, out)
    return out


def network(x, triangles, holder, sheet):
    """The same joints as a dense Laplacian: conductances between all vertices, then terminals merged."""
    n = len(x)
    g = np.zeros((n, n))
    for t in triangles:
        for j in range(3):
            a, b, c = np.roll(t, -j)
            u, v = x[a] - x[c], x[b] - x[c]
            cot = u @ v / np.linalg.norm(np.cross(u, v))
            k = 2 * sheet[a] * sheet[b] / (sheet[a] + sheet[b])
            g[a, b] += 0.25 * cot * k
    return np.maximum(g + g.T, 0.0)


def test_a_ring_conducts_as_the_closed_form_the_better_the_finer():
    """G = pi k / ln(b / a); the error falls with the square of the cells."""
    k = 3e-12
    exact = np.pi * k / np.log(1.4)
    errors = []
    for across, around in ((4, 32), (8, 64)):
        x, triangles, holder = annulus(across, around)
        errors.append(conductances(x, triangles, holder, np.full(len(x), k))[0, 1] / exact - 1.0)
    assert 0.0 < errors[1] < errors[0] / 3.0 < 0.01


def test_eliminating_joints_gives_the_schur_complement_of_the_network():
    rng = np.random.default_rng(4)
    x, triangles, holder = annulus(5, 24)
    holder[:12], holder[12:24] = 0, 1  # two cavities side by side share the rim
    sheet = 10.0 ** rng.uniform(-13, -11, len(x))
    rim = holder == RING
    seeping = np.where(rim, 10.0 ** rng.uniform(-13, -11, len(x)), 0.0)  # through the wall to the outside
    g = network(x, triangles, holder, sheet)
    g[:, -1] += seeping
    g[-1] += seeping
    laplacian = np.diag(g.sum(axis=1)) - g
    merge = np.stack([(holder == which)[~rim] for which in (0, 1, OUTSIDE)], 1).astype(float)
    inner = np.linalg.solve(laplacian[np.ix_(rim, rim)], laplacian[np.ix_(rim, ~rim)])
    schur = laplacian[np.ix_(~rim, ~rim)] - laplacian[np.ix_(~rim, rim)] @ inner
    expected = -merge.T @ schur @ merge
    np.fill_diagonal(expected, 0.0)
    found = conductances(x, triangles, holder, sheet, 2, seeping)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-24)
    np.testing.assert_array_equal(found, found.T)


def test_rings_in_a_row_of_fourteen_decades_conduct_as_their_resistances_add():
    x, triangles, holder = annulus(6, 48)
    sheet = np.repeat([1e-8, 1e-10, 1e-22, 1e-12, 1e-9, 1e-11, 1e-8], 48)
    whole = conductances(x, triangles, holder, np.full(len(x), 1.0))[0, 1]
    # six rings of equal resistance, each of two halves in a row
    halves = np.sum(0.5 / sheet[:-1:48][:6] + 0.5 / sheet[48::48][:6])
    assert conductances(x, triangles, holder, sheet)[0, 1] == pytest.approx(whole * 6 / halves, rel=1e-12)


def test_a_ring_that_is_shut_all_around_lets_nothing_through_and_one_gap_does():
    x, triangles, holder = annulus(4, 32)
    sheet = np.full(len(x), 1e-9)
    sheet[2 * 32 : 3 * 32] = 0.0
    assert conductances(x, triangles, holder, sheet)[0, 1] == 0.0
    sheet[2 * 32] = 1e-9
    open_ring = conductances(x, triangles, holder, np.full(len(x), 1e-9))[0, 1]
    assert 0.0 < conductances(x, triangles, holder, sheet)[0, 1] < open_ring / 4


def test_a_lifted_vertex_lets_poiseuille_s_flow_through_and_a_pressed_one_persson_s():
    distance, pressing = np.array([4e-4, 1e-4, 1e-4, np.inf]), np.array([0.0, 0.0, 3e4, 0.0])
    sheet = np.zeros(4)
    walls = walls_of_regions(np.zeros((0, 3)), SEAL)
    sheets_of(distance, 1e-4, pressing, walls, np.zeros(4, np.int64), AIR.atmosphere, AIR.rt, sheet)
    # a strip as wide as it is long of that sheet is a slot of flow.slot_conductance
    for at, gap in ((0, 3e-4 + contact_gap(SEAL, 0.0)), (2, contact_gap(SEAL, 3e4))):
        assert sheet[at] / 2.0 == pytest.approx(slot_conductance(1.0, gap, 1.0, AIR.atmosphere, AIR.rt))
    assert sheet[0] > sheet[1] > sheet[2] > 0.0 and sheet[3] == np.inf


def test_forces_on_vertices_are_the_integral_of_their_pressures():
    x, triangles, _ = annulus(3, 24)
    pressure, force = np.zeros(len(x)), np.full(len(x), 0.2)
    contact_pressures(triangles, x, force, pressure)
    corners = x[triangles]
    area = 0.5 * np.linalg.norm(
        np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1
    )
    assert (area * pressure[triangles].mean(axis=1)).sum() == pytest.approx(force.sum(), rel=1e-12)


def shut(volume, amount, seeping, steps):
    """Pressures of cavities with stiff walls after each step, and their amounts."""
    k = len(volume)
    course = []
    for _ in range(steps):
        w, b, mu = np.zeros((k, k)), np.array(volume), np.zeros(0)
        gas = make_gas(AIR, amount, amount * AIR.rt / volume, np.zeros(k, bool))
        gas = gas._replace(seeping=seeping)
        x, u, a = np.zeros(k), np.zeros(k), make_workspace(0, k)
        bound = begin(w, b, mu, x, u, gas, True, a)
        advance(w, b, mu, x, u, gas, 1e-10, bound, 500, a)
        assert finish(w, b, mu, x, u, gas, a) <= 1e-10
        amount = gas.amount.copy()
        course.append(gas.pressure.copy())
    return np.array(course), amount


def test_a_stiff_cavity_fills_as_the_exact_solution_to_the_first_order_of_the_step():
    volume, conductance, time = np.array([2e-6]), 1e-12, 10.0
    start = np.array([0.4 * AIR.atmosphere * volume[0] / AIR.rt])
    exact = leak(start[0], volume[0], conductance, AIR.atmosphere, AIR.rt, time)
    errors = []
    for steps in (50, 100):
        s = time / steps * conductance
        _, amount = shut(volume, start, np.array([[0.0, s], [s, 0.0]]), steps)
        errors.append(abs(amount[0] / exact - 1.0))
    assert errors[1] < 0.55 * errors[0] < 0.01


def test_a_rim_wide_open_brings_the_atmosphere_s_pressure_within_one_step_and_no_more():
    volume, start = np.array([2e-6]), np.array([1e-5])
    s = 1e-6  # 1e5 times what the volume can take
    course, _ = shut(volume, start, np.array([[0.0, s], [s, 0.0]]), 3)
    np.testing.assert_allclose(course, AIR.atmosphere, rtol=1e-5)
    assert np.all(np.diff(np.abs(course[:, 0] - AIR.atmosphere)) <= 1e-9 * AIR.atmosphere)


def test_what_gets_from_one_cavity_to_the_next_is_lost_to_neither():
    volume, s = np.array([2e-6, 1e-6]), 4e-12
    amount = np.array([0.5, 0.9]) * AIR.atmosphere * volume / AIR.rt
    seeping = np.zeros((3, 3))
    seeping[0, 1] = seeping[1, 0] = s
    course, after = shut(volume, amount, seeping, 40)
    # each step's gas laws hold to 1e-10
    assert after.sum() == pytest.approx(amount.sum(), rel=1e-8)
    assert abs(course[-1, 0] - course[-1, 1]) < 0.1 * abs(course[0, 0] - course[0, 1])


def cup_on_a_plane(seal, grid=76, above=2e-4):
    """The small cup, its rim so far above a fixed plane [m]."""
    made = cup(CUPS["small"].shape, GRIDS[grid])
    mesh = made.mesh.with_nodes(made.mesh.nodes + np.array([0.0, above, 0.0]))
    material = Material(CUPS["small"].youngs_modulus, POISSON_RATIO, 1070.0, 0.0, 1e-3)
    body = HeldBody("cup", mesh, material, made.held, np.union1d(made.underside, made.rim))
    limits = thresholds(contact=1e-4, sealing=5e-4, alarm=2e-3)
    return Suction([CupSpec(body, seal=seal)], FixedSide(slab(0.2, 1, 0.02)), limits, AIR)


def test_a_ring_of_the_wall_that_is_pressed_flat_keeps_the_air_inside():
    """A cup that is pushed rests on its rim's inner edge in the end, which was wall of its cavity before."""
    suction = cup_on_a_plane(SEAL, 203, above=2e-3)
    handle = suction.cups[0].body.handle
    centre = handle.centre.copy()
    for depth in np.linspace(0.0, 2.9e-3, 59):  # contact keeps 0.1 mm of the 2 mm
        handle.drive(centre - np.array([0.0, depth, 0.0]))
        suction.step()
    enclosure, x = suction.enclosures[0], suction.cups[0].local
    flattened = (enclosure.pockets.of >= 0) & (enclosure.gaps.distance < 1.1e-4)
    assert flattened.sum() >= 16 and np.ptp(np.hypot(*x[flattened][:, ::2].T)) < 1e-4  # all around
    conductance = []
    for newton in (0.0, 1.0):
        enclosure.find_flow(x, newton * flattened, AIR)
        conductance.append(enclosure.conductance[enclosure.active[0], -1])
    suction.close()
    assert 0.0 < conductance[1] < 1e-3 * conductance[0]


def pushed_and_pulled(seal):
    """Of each step, down by 4 mm and up by 2: amounts before and after, conductance, pressure."""
    suction = cup_on_a_plane(seal)
    handle = suction.cups[0].body.handle
    centre, course, amount = handle.centre.copy(), [], np.nan
    for depth in np.concatenate([np.arange(40), np.arange(40, 20, -1)]) * 1e-4:
        handle.drive(centre - np.array([0.0, depth, 0.0]))
        suction.step()
        enclosure = suction.enclosures[0]
        flow = enclosure.conductance[enclosure.active[0], -1]
        course.append((amount, suction.amount[0], flow, suction.pressure[0]))
        amount = suction.amount[0]
    suction.close()
    return np.array(course[1:])


def test_a_cup_loses_and_gains_what_its_rim_conducts_in_every_step():
    before, after, flow, pressure = pushed_and_pulled(SEAL).T
    gained = flow * 0.01 * (AIR.atmosphere**2 - pressure**2) / AIR.rt
    # the gas laws hold to 1e-10 of n
    np.testing.assert_allclose(after - before, gained, rtol=0, atol=1e-9 * before[0])
    assert gained[:39].sum() < -0.1 * before[0] < 0.02 * before[0] < gained[-10:].sum()
