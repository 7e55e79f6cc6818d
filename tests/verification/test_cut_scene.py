"""A ball in the mouth of a cut: two rates feel it as everything at the servo's rate does."""

import numpy as np

import palpo

COARSE = {"bodies.gel.geometry.divisions": [8, 3, 6]}


def _felt(interface: str, until: float, **more: object) -> np.ndarray:
    """Forces on the hand each 5 ms along the scene's own path, (n, 3) [N]."""
    scene = palpo.load("incision", {**COARSE, **more})
    state, path = scene.build(interface=interface).start(), np.array(scene.spec.device.path)
    felt = []
    for k in range(round(until / 0.005)):
        hand = [np.interp((k + 1) * 0.005, path[:, 0], path[:, i]) for i in (1, 2, 3)]
        state.step(hand=hand, ticks=5)
        felt.append(np.array(state.force))
    return np.array(felt)


def test_two_rates_feel_a_cut_as_one_does() -> None:
    two, one = _felt("krylov", 1.8), _felt("monolithic", 1.8)
    peak = np.linalg.norm(one, axis=1).max()
    off = np.linalg.norm(two - one, axis=1) / peak
    assert peak > 1.0
    assert np.sqrt((off**2).mean()) < 0.01
    assert off.max() < 0.05


def test_two_rates_feel_sides_that_are_pressed_together_as_one_does() -> None:
    """The ball presses beside the cut of a block that is held all round."""
    walls = [[[x - 0.0005, -0.001, -0.03], [x + 0.0005, 0.03, 0.03]] for x in (-0.032, 0.032)]
    floor = [[-0.04, -0.001, -0.03], [0.04, 0.001, 0.03]]
    held = {"bodies.gel.fixed": [{"box": box} for box in (floor, *walls)]}
    path = [[0.0, -0.010, 0.034, -0.004], [0.3, -0.010, 0.030, -0.004], [1.3, -0.010, 0.020, -0.004]]
    two, one = (_felt(kind, 1.6, **held, **{"device.path": path}) for kind in ("krylov", "monolithic"))
    off = np.linalg.norm(two - one, axis=1) / np.linalg.norm(one, axis=1).max()
    assert np.sqrt((off**2).mean()) < 0.01
    # where the hand stands still, so does the force
    assert np.ptp(two[-20:], axis=0).max() < 1e-3 * np.linalg.norm(one[-1])


def test_what_is_cut_is_never_harder_than_what_is_whole() -> None:
    """To let go of what holds the sides takes nothing (Rayleigh): at one depth less force, never more."""
    cut, whole = _felt("krylov", 1.8), _felt("krylov", 1.8, **{"bodies.gel.incisions": []})
    up = whole[:, 1] > 0.1
    assert up.any()
    assert (cut[up, 1] < whole[up, 1]).all()


def test_a_tool_in_an_open_cut_tears_it_on_and_a_copy_of_the_state_goes_on_the_same() -> None:
    """Where the cut goes on as a seam; what was torn is part of the state."""
    outline = [[0, 0.03, 0], [0, 0.009, 0], [0, 0.009, 0.03], [0, 0.03, 0.03]]
    opened = [[x, y, z - 0.03] for x, y, z in outline]
    cuts = [{"corners": opened}, {"corners": outline, "toughness": 3.0}]
    state = palpo.load("incision", {**COARSE, "bodies.gel.incisions": cuts}).build().start()
    path = np.array([[0, 34, -8], [0.2, 28, -8], [0.7, 18, -8], [1.2, 18, 8]]) * [1, 1e-3, 1e-3]

    def lead(one: palpo.State, first: int, last: int) -> np.ndarray:
        felt = []
        for k in range(first, last):
            hand = [0.001, *(np.interp((k + 1) * 0.02, path[:, 0], path[:, i]) for i in (1, 2))]
            one.step(hand=hand, ticks=20)
            felt.append(np.array(one.force))
        return np.array(felt)

    def torn(one: palpo.State) -> float:
        body = one.rig.scene.members[0].body
        return float(body.areas[(body.toughness > 0.0) & ~body.bonded].sum())

    lead(state, 0, 54)
    assert torn(state) > 0.0
    other = state.copy()
    np.testing.assert_array_equal(lead(state, 54, 64), lead(other, 54, 64))
    assert torn(state) == torn(other)
