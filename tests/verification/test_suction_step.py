"""The suction step: cups that stick, hold, lift and let go, and what is conserved while they do."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from palpo.physics.bodies import held_factor
from palpo.physics.bodies.chain_body import RigidBody
from palpo.physics.bodies.held_body import HeldBody
from palpo.physics.collision.nearest import target
from palpo.physics.contact.problem import Stop
from palpo.physics.exchange.port import SOLVE_DIVERGED
from palpo.physics.fem.cholesky import CholeskyFactor
from palpo.physics.fem.material import Material
from palpo.physics.gas.flood import thresholds
from palpo.physics.gas.gaps import choose_points, make_gaps, measure
from palpo.physics.gas.law import OutsideAir
from palpo.physics.gas.pressure import SOLVED
from palpo.physics.mesh.cups import CUPS, GRIDS, POISSON_RATIO, CupMesh, cup
from palpo.physics.mesh.generate import block, box_surface, sphere_surface
from palpo.physics.mesh.partners import slab
from palpo.physics.mesh.tet import TetMesh
from palpo.physics.numerics.errors import InputError
from palpo.physics.suction.contact_search import Ground
from palpo.physics.suction.cup_spec import CupSpec
from palpo.physics.suction.sides import FixedSide, RigidSide, SoftSide
from palpo.physics.systems.suction.step import Suction

H, G = 0.01, 9.81
LIMITS = thresholds(contact=1e-4, sealing=5e-4, alarm=2e-3)
AIR = OutsideAir(largest=102e3)
SMALL = cup(CUPS["small"].shape, GRIDS[76])
EDGE = 0.115
UP = np.array([0.0, 1.0, 0.0])
TIGHT = Stop(1e-10, 3000)


def small_cup(above=2e-4, gravity=G, turn=0.02) -> HeldBody:
    """The small cup, coarsest, its rim so far above y = 0."""
    mesh = SMALL.mesh.with_nodes(SMALL.mesh.nodes + above * UP)
    density = CUPS["small"].mass / mesh.volume
    material = Material(CUPS["small"].youngs_modulus, POISSON_RATIO, density, 0.0, 1e-3)
    return HeldBody("cup", mesh, material, SMALL.held, touchable(SMALL), (0.0, -gravity, 0.0), turn=turn)


def touchable(of: CupMesh):
    """Underside and rim, the lowest last."""
    nodes = np.union1d(of.underside, of.rim)
    return nodes[np.argsort(-of.mesh.nodes[nodes, 1], kind="stable")]


def on_plane(body, h=H, air=AIR, **options) -> Suction:
    return Suction([CupSpec(body)], FixedSide(slab(0.2, 1, 0.02)), LIMITS, air, h, **options)


def test_a_held_body_makes_one_factor_for_all_that_a_step_asks_of_it(monkeypatch):
    """Each step asks for few nodes, then for more, and moves on; no step but the first makes two."""
    body, made = small_cup(turn=0.0), []
    make = CholeskyFactor.refactor
    monkeypatch.setattr(CholeskyFactor, "refactor", lambda *args: made.append(1) or make(*args))
    few, many = body.last.size // 4, body.last.size
    counts = []
    for _ in range(5):
        before = len(made)
        motion = body.free_motion(H)
        exact = body.compliance(few, H)[-3 * few :, -3 * few :].copy()
        whole = body.compliance(many, H)
        np.testing.assert_allclose(whole[-3 * few :, -3 * few :], exact, atol=1e-9 * np.abs(exact).max())
        body.finish(motion, H)
        counts.append(len(made) - before)
    assert counts[0] == 2, "or the test shows nothing"
    assert counts[1:] == [1, 1, 1, 1]


@pytest.mark.parametrize("free", [False, True], ids=["driven", "free handle"])
def test_a_large_body_that_solves_with_a_factor_of_its_own_moves_and_yields_as_one_with_a_single_one(
    monkeypatch, free
):
    found = []
    for least in (0, held_factor.LARGE):
        monkeypatch.setattr(held_factor, "LARGE", least)
        body = small_cup(turn=0.0)
        assert (body._orders.open is None) == (least > 0), "or the test shows nothing"
        if free:
            body.handle.release()
        body.load[body.last[-5:]] = 0.0, 0.1, 0.02
        for _ in range(3):
            motion = body.free_motion(H)
            few = body.compliance(8, H)[-24:, -24:].copy()
            many = body.compliance(body.last.size, H).copy()
            body.finish(motion + body.respond(body.load, H), H)
        found.append((body.x, motion, few, many))
    for one, other in zip(*found, strict=True):
        # of single precision
        np.testing.assert_allclose(one, other, rtol=0.0, atol=1e-4 * np.abs(other).max())


def test_cups_of_one_mesh_share_the_patterns_of_their_factors_wherever_they_stand():
    one, other = small_cup(), small_cup(above=0.1)
    assert all(a is b for a, b in zip(one._orders.ending, other._orders.ending, strict=True))
    assert one._orders.sizes[-1] == one.last.size, "a factor can end with all that may touch"


@pytest.mark.parametrize("free", [False, True], ids=["driven", "free handle"])
def test_what_is_found_together_is_what_is_found_one_by_one(free):
    body = small_cup()
    if free:
        body.handle.release()
    rng = np.random.default_rng(1)
    forces = [rng.standard_normal(body.x.shape) for _ in range(4)]
    alone = [body.free_motion(H), *(body.respond(force, H) for force in forces)]
    for count in (0, 2, 4):
        motion, answers = body.motions(forces[:count], H)
        # the same sums, which a compiler may round in another order
        for one, other in zip([motion, *answers], alone, strict=False):
            np.testing.assert_allclose(one, other, atol=1e-12 * np.abs(other).max())
        for one, other in zip(body.responses(forces[:count], H), answers, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-12 * np.abs(other).max())


def cube(mass, gravity=G) -> RigidSide:
    """A rigid cube, its top in y = 0."""
    surface = box_surface((EDGE, EDGE, EDGE))
    inertia = mass * EDGE**2 / 6.0 * np.eye(3)
    body = RigidBody("cube", mass, inertia, (0.0, -0.5 * EDGE, 0.0), gravity=(0.0, -gravity, 0.0))
    return RigidSide(body, surface, 512)


@dataclass
class Record:
    """One row a step: force on the holder; of the one cavity p, V, n, V at the start, nan without."""

    system: Suction
    hold: list = field(default_factory=list)
    cavity: list = field(default_factory=list)
    error: list = field(default_factory=list)

    def run(self, path, seconds):
        """Move the holder by path(t) [m] upward from where it was at first."""
        system, handle = self.system, self.system.cups[0].body.handle
        for _ in range(round(seconds / system.h)):
            handle.drive(handle.centre + path(system.time + system.h) * UP)
            system.step()
            one = system.cavity_count == 1
            row = [system.pressure, system.volume, system.amount, system.start_volume]
            self.hold.append(system.hold[0, 1])
            self.cavity.append([a[0] for a in row] if one else [np.nan] * 4)
            law = system.pressure * system.volume / (system.amount * system.air.rt)
            self.error.append(np.abs(law - 1.0).max(initial=0.0))
        return self

    @property
    def columns(self):
        return np.array(self.cavity).T


def press_and_lift(depth, seconds, speed):
    """Down by depth [m] in `seconds`, half of that rest, then up at a speed [m/s]."""
    return lambda t: -depth * min(t / seconds, 1.0) + speed * max(0.0, t - 1.5 * seconds)


@pytest.fixture(scope="module")
def pull():
    """Pressed 1 mm onto a plane, held, and pulled until after it has let go."""
    return Record(on_plane(small_cup())).run(press_and_lift(1.2e-3, 0.2, 0.05), 1.5)


def test_a_cup_sticks_to_a_plane_and_then_lets_go(pull):
    weight = CUPS["small"].mass * G
    hold, volume = np.array(pull.hold), pull.columns[1]
    # pressed down, then pulled with many times its weight, then free; the cup has swung out by the end
    assert hold[25] < -weight
    assert hold.max() > 10 * weight
    assert np.isnan(volume[-10:]).all()
    assert hold[-1] == pytest.approx(weight, rel=1e-2)


def test_the_gas_law_is_solved_in_every_step(pull):
    assert max(pull.error) <= SOLVED


def test_air_only_leaves_and_only_at_the_largest_pressure(pull):
    p, _, n, _ = pull.columns
    kept = ~np.isnan(n)
    p, change = p[kept][1:], np.diff(n[kept])
    assert (change <= 0.0).all()
    assert (change[p < AIR.largest] == 0.0).all()
    assert (change < 0.0).any()


def test_the_cavitys_volume_obeys_the_gas_law_to_the_second_power_of_the_step():
    errors = []
    for h in (0.01, 0.005, 0.0025):
        record = Record(on_plane(small_cup(), h, stop=TIGHT)).run(press_and_lift(1.2e-3, 0.1, 0.02), 0.35)
        p, _, n, _ = record.columns
        # the volume found afresh at the start of the next step, over what the pressure took it to be
        found = np.append(record.columns[3][1:], np.nan)
        late = np.arange(len(p)) * h >= 0.17
        errors.append(np.nanmax(np.abs(p * found / (n * AIR.rt) - 1.0)[late]))
    assert errors[0] <= 1e-2
    # V is linear over a step of constant speed; walls turn and the border moves, both with the step's square
    assert np.divide(errors[:-1], errors[1:]).min() >= 2.0


def test_a_cup_that_rests_at_atmospheric_pressure_feels_no_suction():
    system = on_plane(small_cup(above=LIMITS.contact, gravity=0.0))
    for _ in range(3):
        system.step()
    assert system.pressure == pytest.approx([AIR.atmosphere], rel=1e-9)
    # 1e-9 of the atmosphere on the cavity's 8 cm2
    assert np.abs(system.hold[0, :3]).max() <= 1e-9 * AIR.atmosphere * 8e-4
    assert np.abs(system.r).max(initial=0.0) <= 1e-9 * AIR.atmosphere * 8e-4


def soft_cube() -> SoftSide:
    """A soft cube in the void, its top in y = 0."""
    mesh = block((EDGE, EDGE, EDGE), (4, 4, 4))
    mesh = mesh.with_nodes(mesh.nodes - 0.5 * EDGE * UP)
    top = np.flatnonzero(mesh.nodes[:, 1] > -1e-9)
    material = Material(1e4, POISSON_RATIO, 0.05 / EDGE**3, 0.0, 1e-2)
    return SoftSide(HeldBody("cube", mesh, material, touchable=top, gravity=(0.0, 0.0, 0.0)), 512)


def cube_momentum(part) -> np.ndarray:
    body = part.body
    return 0.05 * body.state.v[0] if isinstance(part, RigidSide) else body.momentum()[0]


@pytest.mark.parametrize("kind", ["rigid", "soft"])
def test_a_cup_and_a_cube_that_meet_in_the_void_keep_their_momentum(kind):
    body = small_cup(above=4e-4, gravity=0.0)
    part = cube(0.05, gravity=0.0) if kind == "rigid" else soft_cube()
    body.handle.release()
    body.handle.velocity[:3] = 0.01, -0.3, 0.02
    body.v[:] = np.tile(body.handle.velocity[:3], body.free.size)
    system = Suction([CupSpec(body)], part, LIMITS, AIR, H)

    def momentum():
        held = body.node_mass[body.fixed].sum()
        return body.momentum()[0] + held * body.handle.velocity[:3] + cube_momentum(part)

    start, pressures = momentum(), []
    for _ in range(30):
        system.step()
        pressures += list(system.pressure)
    assert max(pressures) > AIR.atmosphere + 100.0
    assert cube_momentum(part)[1] < 0.05 * -0.01
    # forces come in pairs; what is left is the rounding of solves and of turned stiffnesses
    assert momentum() == pytest.approx(start, abs=1e-9 * np.abs(start).max())


@pytest.mark.parametrize(("mass", "lifted"), [(0.05, True), (2.0, False)])
def test_a_pressed_cup_lifts_what_its_suction_can_carry(mass, lifted):
    part = cube(mass)
    low = np.flatnonzero(part.surface.vertices[:, 1] < 0.0)
    ground = Ground(-EDGE - LIMITS.contact, 0.6, low)
    system = Suction([CupSpec(small_cup())], part, LIMITS, AIR, H, ground=ground)
    record = Record(system).run(press_and_lift(2.2e-3, 0.2, 0.04), 1.2)
    risen = part.body.x[0, 1] + 0.5 * EDGE
    assert (risen > 0.03) == lifted
    if lifted:
        # it hangs on the holder; a few ms of swinging are left
        assert record.hold[-1] == pytest.approx((mass + CUPS["small"].mass) * G, rel=1e-2)
    else:
        assert risen == pytest.approx(0.0, abs=1e-5)


def test_two_cups_side_by_side_carry_half_each():
    part, above = cube(0.1), 2e-4
    low = np.flatnonzero(part.surface.vertices[:, 1] < 0.0)
    # one the mirror image of the other, so that whatever tilts them is the same on both sides
    bodies = []
    for sign in (1.0, -1.0):
        nodes = SMALL.mesh.nodes * [sign, 1.0, 1.0] + [sign * 0.03, above, 0.0]
        tets = SMALL.mesh.tets if sign > 0.0 else SMALL.mesh.tets[:, [1, 0, 2, 3]]
        mesh = TetMesh(nodes, np.ascontiguousarray(tets))
        material = Material(338e3, POISSON_RATIO, CUPS["small"].mass / mesh.volume, 0.0, 1e-3)
        bodies.append(HeldBody("cup", mesh, material, SMALL.held, touchable(SMALL)))
    ground = Ground(-EDGE - LIMITS.contact, 0.6, low)
    system = Suction([CupSpec(body) for body in bodies], part, LIMITS, AIR, H, ground=ground, stop=TIGHT)
    path = press_and_lift(2.2e-3, 0.2, 0.02)
    for _ in range(80):
        for body in bodies:
            body.handle.drive(body.handle.centre + path(system.time + H) * UP)
        system.step()
    assert part.body.x[0, 1] + 0.5 * EDGE > 5e-3
    assert sorted(system.cavity_cup) == [0, 1]
    assert system.pressure[0] == pytest.approx(system.pressure[1], rel=1e-5)
    each = (0.5 * 0.1 + CUPS["small"].mass) * G
    assert system.hold[:, 1] == pytest.approx([each, each], rel=1e-2)


def test_a_symmetric_cup_has_symmetric_forces():
    system = on_plane(small_cup(), stop=TIGHT)
    Record(system).run(press_and_lift(1.2e-3, 0.1, 0.02), 0.3)
    side = system.cups[0]
    force = side.push(np.append(system.r, np.zeros(len(system.rows.fields))))
    x = SMALL.mesh.nodes
    angle = 2.0 * np.pi / GRIDS[76].sectors
    turn = np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]])
    image = np.linalg.norm((x @ turn.T)[:, None] - x[None], axis=2).argmin(axis=1)
    scale = np.abs(force).max()
    assert scale > 0.01
    # the solver's tolerance, and the spread of tangent frames and elements' order over the sectors
    assert force[image] == pytest.approx(force @ turn.T, abs=1e-5 * scale)


def test_a_flattened_cup_keeps_air_and_clings():
    record = Record(on_plane(small_cup()))
    record.run(press_and_lift(9.8e-3, 0.4, 0.05), 0.75)
    p, v, n, _ = record.columns
    assert not np.isnan(n).any()
    # the valleys over the whole roof stay, and what its wall is bent; the gap of contact is no room for air
    roof = np.pi * CUPS["small"].shape.top ** 2
    assert v.min() > record.system.enclosures[0].roughness * roof
    assert n[-1] > 0.9 * AIR.amount(AIR.largest, v.min())
    assert p[-1] < 0.7 * AIR.atmosphere
    # the pockets take over what the walls leave: pressed on, the volume only falls
    pressed = v[5:40]
    assert (np.diff(pressed) < 0.0).all()


def test_the_air_of_a_flattened_cup_leaks_to_the_atmospheres_pressure_from_either_side():
    record = Record(on_plane(small_cup(), air=replace(AIR, leak=2e-5)))
    record.run(press_and_lift(10.2e-3, 0.4, 0.0), 0.7)
    assert record.system.flat.all()
    p, _, n, _ = record.columns
    pressed = slice(45, None)
    assert (np.diff(n[pressed]) <= 0.0).all()
    # some time constants (V + P_atm dV/dp) / (2 G P_atm) of some hundredths of a second have passed
    assert p[45] > p[-1] > AIR.atmosphere
    assert p[-1] == pytest.approx(AIR.atmosphere, rel=1e-5)
    # pulled by a millimetre, air flows back
    record.run(lambda t: -9.2e-3, 0.8)
    p, _, n, _ = record.columns
    assert p[70:].min() < 0.95 * AIR.atmosphere
    assert (np.diff(n[70:]) >= 0.0).all()
    assert p[-1] == pytest.approx(AIR.atmosphere, rel=5e-3)


def test_the_gap_that_contact_keeps_holds_no_air():
    """Half of it, and the cup lower by the other half: the same."""
    volumes = []
    for closer in (0.0, 0.5 * LIMITS.contact):
        limits = thresholds(*(distance - closer for distance in LIMITS))
        cup = small_cup(above=2e-4 - closer)
        wall = FixedSide(slab(0.2, 1, 0.02))
        record = Record(Suction([CupSpec(cup)], wall, limits, replace(AIR, leak=2e-5), H, stop=TIGHT))
        record.run(press_and_lift(10.2e-3, 0.4, 0.0), 0.5)
        assert record.system.flat.all()
        volumes.append(record.columns[1, [20, -1]])
    # what the solver leaves
    assert volumes[1] == pytest.approx(volumes[0], rel=1e-3)


def test_a_solution_that_diverges_lets_no_air_out_and_is_counted(monkeypatch):
    def run_away(w, b, mu, x, u, gas, start, solver, *_):
        gas.pressure[:], gas.amount[:] = 1e9, 0.0  # far over the largest pressure, where air would leave
        solver.state.told["flags"] |= SOLVE_DIVERGED

    cups = Record(on_plane(small_cup())).run(lambda t: -2e-3 * t / 0.2, 0.2)
    system, amount = cups.system, cups.columns[2, -1]
    monkeypatch.setattr("palpo.physics.systems.suction.step.press", run_away)
    cups.run(lambda t: -2e-3, H)
    assert system.diverged > 0
    assert cups.columns[2, -1] == amount > 0.0


def test_rows_left_out_change_nothing():
    class Whole(Suction):
        def _set_rows(self):
            super()._set_rows()
            self.rows.inside[:] = True

    holds, counts = [], []
    for kind in (Suction, Whole):
        system = kind([CupSpec(small_cup())], FixedSide(slab(0.2, 1, 0.02)), LIMITS, AIR, H, stop=TIGHT)
        holds.append(Record(system).run(press_and_lift(1.2e-3, 0.1, 0.05), 0.3).hold)
        counts.append(system.counts[: system.steps, 0].sum())
    assert counts[0] < counts[1]
    # a row is missed where a gap closes by up to 1 % of the contact distance
    assert holds[0] == pytest.approx(holds[1], abs=1e-3 * np.abs(holds[1]).max())


def test_a_cup_that_rests_pressed_has_rows_where_it_touches_and_no_others():
    """What presses it alone would bring its hollow nearer, too, where nothing comes to touch."""
    suction = on_plane(small_cup(), stop=TIGHT)
    Record(suction).run(press_and_lift(2e-3, 0.1, 0.0), 0.3)
    gaps = suction.contacts.gap[: suction.rows.count]
    assert (suction.r.reshape(-1, 3)[:, 0] > 0.0).sum() > 8, "or the test shows nothing"
    assert gaps[suction.solved].max() <= LIMITS.contact
    # what a step would bring nearer than sealing, had nothing held it
    assert (suction.rows.b_all[: 3 * len(gaps) : 3] < LIMITS.sealing).sum() > len(suction.solved)


def test_a_cup_that_hits_a_plane_within_a_step_has_the_rows_for_it_at_once():
    suction = on_plane(small_cup(above=3e-3))
    cup, before = Record(suction), np.inf
    for _ in range(8):
        cup.run(lambda t: -0.15 * t, H)
        if (suction.r > 0.0).any():
            break
        before = suction.rows.b_all[: 3 * suction.rows.count : 3].min(initial=np.inf)
    assert (suction.r > 0.0).any() and before > LIMITS.contact, "or the test shows nothing"
    assert suction.counts[suction.steps - 1, 3] == 1


def test_a_given_pressure_presses_with_pressure_times_area():
    system = on_plane(small_cup(above=LIMITS.contact, gravity=0.0), gauge=-5e3)
    for _ in range(60):
        system.step()
    assert system.pressure == pytest.approx([AIR.atmosphere - 5e3])
    area = system.enclosures[0].gradient[0, :, 1].sum()
    # the sealing line lies a little inside the rim's inner edge, a regular polygon of 12 corners
    rim = 0.5 * 12 * np.sin(2.0 * np.pi / 12) * CUPS["small"].shape.inner ** 2
    assert 0.85 * rim < area < rim
    # at rest, contact and holder carry it
    carried = system.r[::3].sum() + system.hold[0, 1]
    assert carried == pytest.approx(5e3 * area, rel=1e-3)


@pytest.mark.parametrize("free", [False, True], ids=["driven", "free handle"])
def test_the_compliance_of_the_nodes_that_touch_is_their_response(free):
    body = small_cup()
    if free:
        body.handle.release()
    body.free_motion(H)
    count = 10
    compliance = body.compliance(count, H)
    c = len(compliance) // 3
    assert c >= count
    nodes = body.last[-c:]
    for node in nodes[[0, -1]]:
        force = np.zeros_like(body.x)
        force[node] = 0.3, -1.0, 0.5
        way = H * body.respond(force, H)
        k = int(np.flatnonzero(nodes == node)[0])
        column = compliance[:, 3 * k : 3 * k + 3] @ force[node]
        assert way[nodes].ravel() == pytest.approx(column, rel=1e-9, abs=1e-12 * np.abs(column).max())


def test_a_free_handle_falls_with_its_cup_and_a_held_one_carries_it():
    body = small_cup()
    body.handle.release()
    for _ in range(5):
        body.finish(body.free_motion(H), H)
    assert body.handle.velocity == pytest.approx([0, -5 * G * H, 0, 0, 0, 0], abs=1e-10)
    assert body.v.reshape(-1, 3)[:, 1] == pytest.approx(-5 * G * H, rel=1e-9)
    held = small_cup()
    for _ in range(200):
        motion = held.free_motion(H)
        wrench = held.holding_wrench(motion, H)
        held.finish(motion, H)
    assert wrench == pytest.approx([0, CUPS["small"].mass * G, 0, 0, 0, 0], abs=1e-4)


def test_distances_asked_only_where_they_matter_are_those_of_all_points():
    rng = np.random.default_rng(4)
    ball, alarm = target(sphere_surface(0.05, 3)), 0.01
    x = sphere_surface(0.05, 3).vertices
    points = 0.08 * rng.normal(size=(300, 3))
    gaps, asked, possible = make_gaps(300), 0, 0
    for _ in range(20):
        points = points + 1e-3 * rng.normal(size=points.shape)
        near = choose_points(points, alarm, 0.0, gaps)
        measure(ball, x, points, gaps.asked[:near], 0.0, gaps)
        fresh = make_gaps(300)
        measure(ball, x, points, np.arange(300), 0.0, fresh)
        within = fresh.distance <= alarm
        assert gaps.distance[within] == pytest.approx(fresh.distance[within], abs=1e-15)
        assert (gaps.distance[~within] > alarm).all()
        # a polyhedron in a sphere: between the radius and that of its faces' middles
        r = np.linalg.norm(points, axis=1) - 0.05
        assert (fresh.distance >= r - 1e-12).all()
        assert (fresh.distance <= r + 0.05 * 0.02).all()
        asked, possible = asked + near, possible + 300
    assert asked < 0.8 * possible


@pytest.mark.parametrize("touching", [False, True])
def test_held_vertices_lack_a_row_only_where_they_touch(touching):
    """A stem's end near the wall that does not touch it is no contact that was lost for want of a row."""
    body = small_cup()
    far = 2.0 * float(body.x[body.fixed, 1].max())
    kept = far if touching else LIMITS.contact
    suction = Suction([CupSpec(body)], FixedSide(slab(0.2, 1, 0.02)), thresholds(kept, far, far), AIR)
    suction.move_freely()
    suction._search.find(suction.mu, suction.free[-1], H)
    rowless = (body.place_of[suction.cups[0].nodes] < 0).sum()
    assert rowless and suction.contacts.count["lost"][0] == (rowless if touching else 0)
    suction.close()


def test_only_vertices_with_which_the_partner_bulges_have_rows():
    flat = slab(0.2, 40, 0.02)
    radius = np.hypot(flat.vertices[:, 0], flat.vertices[:, 2])
    below = np.flatnonzero((flat.vertices[:, 1] == 0.0) & (np.abs(radius - 0.018) < 1e-3))[:1]
    spiked = flat.vertices.copy()
    spiked[below, 1] = 3e-4
    for surface, rows in ((flat, 0), (flat.with_vertices(spiked), 1)):
        system = Suction([CupSpec(small_cup(above=6e-4))], FixedSide(surface), LIMITS, AIR)
        Record(system).run(press_and_lift(1.2e-3, 0.1, 0.0), 0.2)
        of_partner = system.contacts.identity[system.solved] >= len(system.cups[0].local)
        assert of_partner.sum() == rows
        # pressed, the cup lies on the tip as on the plane
        assert (system.r[::3][of_partner] > 0.01).all()


def test_what_cannot_start_is_refused_in_a_sentence():
    box = box_surface((0.1, 0.1, 0.1))
    open_box = type(box).from_triangles(box.vertices, box.triangles[1:])
    with pytest.raises(InputError, match="the partner's surface is open"):
        Suction([CupSpec(small_cup())], FixedSide(open_box), LIMITS, AIR)
    inside = int(SMALL.underside[0])
    system = Suction(
        [CupSpec(small_cup(above=1e-4), seed=inside)], FixedSide(slab(0.2, 1, 0.02)), LIMITS, AIR
    )
    with pytest.raises(InputError, match="lies inside a cavity"):
        system.step()
    with pytest.raises(InputError, match="starts 3 mm inside its partner"):
        on_plane(small_cup(above=-3e-3)).step()


def test_what_a_solution_changes_is_the_response_to_all_of_its_forces():
    suction = on_plane(small_cup(), stop=TIGHT)
    Record(suction).run(press_and_lift(1.2e-3, 0.1, 0.05), 0.3)
    suction.move_freely()
    suction.detect()
    _, b = suction.assemble()
    springs = len(suction.rows.springs.fields)
    assert len(b) > 3 * len(suction.solved) and springs, "or the test shows nothing"
    x = np.random.default_rng(7).standard_normal(len(b) + springs)
    cup = suction.cups[0]
    expected = cup.body.respond(cup.push(x), H)
    # two sums of solves with one factor
    np.testing.assert_allclose(cup.answer(x, H), expected, atol=1e-11 * np.abs(expected).max())
