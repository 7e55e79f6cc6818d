"""The whole way of a part designer under a virtual screen: an own file, a scene, changes, a file again."""

import numpy as np
import pytest

import palpo
from palpo.app.build.shapes import soft_mesh
from tests.realtime.xserver import acted, display  # noqa: F401  (a fixture)

pytest.importorskip("imgui_bundle", reason="the panel's library is not installed (extra: window)")


def test_a_part_is_chosen_changed_seen_and_saved_in_forty_clicks(display, tmp_path):  # noqa: F811
    seen = acted(display, "tests.realtime.edit_session", tmp_path)
    assert seen["clicks"] <= 40
    first, last = (np.reshape(seen[when], (2, 3)) for when in ("at first", "at last"))
    before = palpo.load(tmp_path / "part.toml")
    (saved,) = (tmp_path / "out").glob("scene-part-*.toml")
    after = palpo.load(saved).spec.body("part")
    assert after.material.name == "ecoflex-00-30"
    assert 1.2 < after.placement.scale < 4.0 and after.placement.position[2] > 0.005
    # what was seen is what was saved: larger by the scale, and moved
    np.testing.assert_allclose(np.ptp(last, axis=0), after.placement.scale * np.ptp(first, axis=0), rtol=1e-6)
    assert abs(last[0, 1]) < 1e-9 and abs(first[0, 1]) < 1e-9  # it stands where it stood
    nodes = soft_mesh(after).nodes
    np.testing.assert_allclose([nodes.min(axis=0), nodes.max(axis=0)], last, atol=1e-6)
    # and the file that it began with is as it was
    assert palpo.load(tmp_path / "part.toml") == before and before.spec.body("part").placement.scale == 1.0
