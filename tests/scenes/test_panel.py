"""The operator's panel without a screen: what it shows, and what a pointer that touches it asks for."""

import subprocess
import sys
from dataclasses import fields, replace
from types import SimpleNamespace

import numpy as np
import pytest

from palpo.physics.exchange.snapshot import STRAIN, Drawable, SceneState, make_geometry
from palpo.render import gl, palette
from palpo.render.camera import Camera
from palpo.render.framebuffer import Framebuffer
from palpo.render.legend import ARROW, Entry, crossed, evenly, freest, legend_entries
from palpo.render.offscreen import EglContext
from palpo.render.overlays import Overlays
from palpo.render.panel import Panel, RenderUnavailable
from palpo.render.panel_state import (
    Card,
    Hint,
    Light,
    LoopReading,
    PanelState,
    Plot,
    Reading,
    Setting,
    Timeline,
    Waiting,
)
from palpo.render.requests import Request
from tests.scenes.offscreen_panel import OffscreenPanel

WIDTH, HEIGHT = 700, 1500  # high enough that nothing has to be scrolled
SECONDS = np.linspace(0.0, 4.0, 200)
INK = palette.from_hex("#26324a")
NAN = float("nan")

STATE = PanelState(
    scene="wire",
    scenes=("beams", "wire"),
    device="mouse",
    status="running",
    status_level="good",
    elapsed=12.5,
    force=1.0,
    force_limit=3.3,
    loops=(LoopReading("servo", 999.0, 1000.0, 0.1, 0), LoopReading("slow", 50.0, 50.0)),
    readings={"contact": (Reading("residual", "1e-9 N"),)},
    knobs={
        "friction": (Setting("mu", "friction", "", 0.3, 0.0, 2.0, help="100 % of all pairs"),),
        "solver": (
            Setting("name", "solver", "", "one", choices=("one", "two")),
            Setting("tolerance", "tolerance", "N", 1e-6, 1e-12, 1e-1, log=True),
            Setting("sweeps", "sweeps", "", 50, 1, 1000, log=True),
            Setting("gravity", "gravity", "", True),
        ),
    },
    plots=(Plot("force", "N", SECONDS, {"norm": 0.3 + 0.2 * np.sin(SECONDS)}, 3.3),),
    keys=(("space", "pause or go on"),),
    messages=("12 s  a message",),
    legend=(Entry("dot", "stick  (3)", palette.CONTACT[1]),),
)


@pytest.fixture(scope="module")
def context():
    why = Panel.missing()
    if why:
        pytest.skip(why)
    try:
        egl = EglContext()
    except RenderUnavailable as none:
        pytest.skip(str(none))
    yield egl
    egl.close()


@pytest.fixture
def desk(context):
    """A panel that has settled on STATE, and a picture to draw it into."""
    panel, frame = OffscreenPanel(WIDTH, HEIGHT), Framebuffer(WIDTH, HEIGHT, 0)
    panel.attach()
    made = SimpleNamespace(panel=panel, frame=frame)
    for _ in range(3):
        show(made)
    click(made, "details")
    yield made
    panel.detach()
    frame.delete()


def show(desk, state=STATE):
    """Draw one frame; what was asked for in it."""
    desk.frame.bind()
    gl.glClear(gl.GL_COLOR_BUFFER_BIT)
    desk.panel.begin()
    requests = desk.panel.draw(state)
    desk.panel.end(WIDTH, HEIGHT)
    return requests


def picture(desk, state=STATE):
    for _ in range(2):
        show(desk, state)
    return desk.frame.read().astype(int)


def middle(desk, name):
    left, top, right, bottom = desk.panel.places[name]
    return 0.5 * (left + right), 0.5 * (top + bottom)


def click(desk, name, state=STATE):
    """Point, press, let go; all that was asked for."""
    asked = []
    desk.panel.move(*middle(desk, name))
    asked += show(desk, state)
    for pressed in (True, False):
        desk.panel.button(pressed)
        asked += show(desk, state)
    return asked + show(desk, state)


def plot_of(desk, plot):
    """The part of the picture that shows this plot alone."""
    image = picture(desk, replace(STATE, plots=(plot,)))
    left, top, right, bottom = (int(edge) for edge in desk.panel.places[f"plot:{plot.title}"])
    return image[top:bottom, left:right]


def like(image, colour, tolerance=30):
    return (np.abs(image - 255 * np.array(colour)) < tolerance).all(axis=2)


# ---- what is asked for


@pytest.mark.parametrize(
    "kind", ["emergency", "pause", "reset", "record", "screenshot", "keep", "save", "fit", "help", "quit"]
)
def test_a_button_asks_for_what_it_says_once(desk, kind):
    assert click(desk, kind) == [Request(kind)]


def test_at_first_there_is_what_people_need_and_the_rest_is_behind_one_click(desk):
    knobs = {
        "friction": (STATE.knobs["friction"][0]._replace(matters=True),),
        "solver": STATE.knobs["solver"],
    }
    state = replace(STATE, knobs=knobs)
    click(desk, "details", state)
    show(desk, state)
    places = set(desk.panel.places)
    assert {"scene", "emergency", "pause", "reset", "keep", "undo", "record", "mu", "details"} <= places
    assert not places & {"plot:force", "tolerance", "sweeps", "View", "overlay:grid", "screenshot", "mute"}
    click(desk, "details", state)
    assert {"plot:force", "mu", "tolerance", "View", "overlay:grid", "screenshot"} <= set(desk.panel.places)


def test_a_single_step_is_there_only_while_paused(desk):
    assert click(desk, "step") == []
    assert click(desk, "step", replace(STATE, paused=True)) == [Request("step")]


def test_one_can_go_back_only_to_a_state_that_was_kept(desk):
    assert click(desk, "undo") == []
    assert click(desk, "undo", replace(STATE, kept="3.2 s")) == [Request("undo")]


def test_the_force_can_be_taken_off_with_the_panel_folded_away(desk):
    wide = desk.panel.covered
    assert click(desk, "fold") == []
    assert desk.panel.covered < wide / 3
    assert click(desk, "emergency") == [Request("emergency")]
    click(desk, "fold")
    assert desk.panel.covered == wide


def test_a_dragged_slider_asks_for_values_of_its_key_that_grow_with_the_drag(desk):
    x, y = middle(desk, "mu")
    desk.panel.move(x, y)
    show(desk)
    desk.panel.button(True)
    asked = show(desk)
    for step in range(1, 7):
        desk.panel.move(x + 6 * step, y)
        asked += show(desk)
    desk.panel.button(False)
    asked += show(desk)
    assert {(request.kind, request.key) for request in asked} == {("set", "mu")}
    values = [request.value for request in asked]
    assert len(values) >= 6
    assert values == sorted(values)
    # the pointer began in the middle of 0 to 2, and went 36 of about 190 pixels of the way
    assert values[0] == pytest.approx(1.0, abs=0.03)
    assert values[-1] == pytest.approx(1.0 + 2.0 * 36 / 190, abs=0.1)


def test_a_slider_dragged_past_its_end_stays_at_its_bound(desk):
    asked = drag(desk, "mu", 500)
    assert asked[-1] == Request("set", "mu", 2.0)


def test_a_logarithmic_slider_has_the_geometric_mean_of_its_bounds_in_the_middle(desk):
    left, _, right, _ = desk.panel.places["tolerance"]
    values = [request.value for request in drag(desk, "tolerance", 1)]
    # a pixel is 1 / 180 of eleven decades
    assert np.log10(values[0]) == pytest.approx(-6.5, abs=3 * 11 / (right - left))


def test_a_slider_of_an_integer_asks_for_integers(desk):
    values = [request.value for request in drag(desk, "sweeps", 20)]
    assert values
    assert all(isinstance(value, int) and 1 <= value <= 1000 for value in values)


def drag(desk, name, pixels):
    x, y = middle(desk, name)
    desk.panel.move(x, y)
    asked = show(desk)
    desk.panel.button(True)
    asked += show(desk)
    desk.panel.move(x + pixels, y)
    asked += show(desk)
    desk.panel.button(False)
    return asked + show(desk)


def type_number(desk, name, words):
    desk.panel.key("mod_ctrl", True)
    asked = click(desk, name)
    desk.panel.key("mod_ctrl", False)
    asked += show(desk) + show(desk)
    assert desk.panel.wants_keys()
    for letter in words:
        desk.panel.write(letter)
        asked += show(desk)
    assert asked == []  # not before it is done
    for pressed in (True, False):
        desk.panel.key("enter", pressed)
        asked += show(desk)
    show(desk)
    assert not desk.panel.wants_keys()
    return asked


@pytest.mark.parametrize(
    ("name", "words", "value"), [("mu", "0.35", 0.35), ("mu", "7", 2.0), ("tolerance", "2e-9", 2e-9)]
)
def test_a_typed_number_is_asked_for_once_and_within_bounds(desk, name, words, value):
    assert type_number(desk, name, words) == [Request("set", name, value)]


def test_a_checkbox_asks_for_the_other_value(desk):
    assert click(desk, "gravity") == [Request("set", "gravity", False)]


@pytest.mark.parametrize(
    ("list_", "choice", "request_"),
    [
        ("name", "name:two", Request("set", "name", "two")),
        ("scene", "scene:beams", Request("scene", value="beams")),
    ],
)
def test_a_list_asks_for_what_was_chosen(desk, list_, choice, request_):
    assert click(desk, list_) == []
    assert click(desk, choice) == [request_]


def test_a_view_is_asked_for_by_its_name(desk):
    assert click(desk, "view:top") == [Request("view", value="top")]


@pytest.mark.parametrize("name", [f.name for f in fields(Overlays) if f.name != "force_scale"])
def test_each_overlay_can_be_turned(desk, name):
    shown = getattr(STATE.overlays, name)
    assert click(desk, f"overlay:{name}") == [Request("overlay", name, not shown)]


def test_the_pointer_belongs_to_the_panel_over_the_panel_only(desk):
    for x, belongs in ((WIDTH - 20, True), (20, False)):
        desk.panel.move(x, 300)
        show(desk)
        show(desk)
        assert desk.panel.wants_pointer() == belongs


# ---- what is shown

CHANGES = {
    "scene": "beams",
    "device": "a Touch",
    "status": "something else, and it takes more than one line to say what it is that went wrong",
    "status_level": "bad",
    "light": Light("waiting", "the scene paused for 9 of the last 1000 ticks", "bad"),
    "elapsed": 99.0,
    "paused": True,
    "frozen": True,
    "recording": True,
    "emergency": True,
    "recording_path": "run.h5",
    "muted": True,
    "handed": "left",
    "kept": "3.2 s",
    "force": 3.2,
    "force_limit": 7.9,
    "loops": (LoopReading("servo", 200.0, 1000.0, 5.0, 17, "late"),),
    "readings": {"contact": (Reading("residual", "1e-9 N", "bad"),)},
    "knobs": {"friction": (Setting("mu", "friction", "", 0.9, 0.0, 2.0),)},
    "plots": (),
    "messages": ("13 s  another",),
    "overlays": Overlays(wireframe=True),
    "legend": (Entry("bar", "strain [-]", upper=0.2),),
    "seen": np.array([[0.03, 0.97], [0.04, 0.98]]),  # in the lower left, so that the legend moves
    "help": True,
    "waiting": Waiting("compiling", 0.4),
    "hint": Hint("Take the tool", ("drag it",), (0.1, 0.3)),
    "timeline": Timeline(4.0, 1.0, False, 1.0, SECONDS, SECONDS),
    "cards": (
        Card("wire", "A wire", "pulls and lifts", "Tools", np.full((20, 30, 3), 90, np.uint8)),
        Card("beams", "Two beams", "hang together", "Tools"),
        Card("snap", "A plug", "clicks", "Connectors", np.full((20, 30, 3), (200, 30, 40), np.uint8)),
    ),
}


@pytest.mark.parametrize(
    "name", ["status", "light", "paused", "frozen", "recording", "emergency", "recording_path", "device"]
)
def test_nothing_that_happens_moves_the_button_that_takes_the_force_off(desk, name):
    before = desk.panel.places["emergency"]
    picture(desk, replace(STATE, **{name: CHANGES[name]}))
    assert desk.panel.places["emergency"] == before


def test_a_hint_has_a_ring_around_its_place_and_hides_less_of_what_is_seen(desk):
    # rings of two sizes: it swells and shrinks
    u, v = np.meshgrid(np.arange(WIDTH), np.arange(HEIGHT))
    for at, seen in (((0.1, 0.3), (0.1, 0.95)), ((0.12, 0.5), (0.1, 0.05))):
        points = np.array([seen]) + 0.01 * np.random.default_rng(3).uniform(-1, 1, (50, 2))
        state = replace(STATE, hint=Hint("Take the tool", ("drag it",), at), seen=points, legend=())
        new = like(picture(desk, state), palette.HINT, 40) & ~like(
            picture(desk, replace(state, hint=None)), palette.HINT, 40
        )
        far = np.hypot(u - at[0] * HEIGHT, v - at[1] * HEIGHT)
        near = new & (far < 2.0 * desk.panel.em)
        assert near.sum() > 20
        # all around the place
        assert len(np.unique(np.round(np.arctan2(v[near] - at[1] * HEIGHT, u[near] - at[0] * HEIGHT)))) >= 6
        box = new & (far > 4.0 * desk.panel.em)
        assert (v[box].mean() < HEIGHT / 2) == (seen[1] > 0.5)


RECORDED = replace(STATE, timeline=Timeline(4.0, 1.0, False, 1.0, SECONDS, SECONDS**2))


def test_a_press_on_the_timeline_asks_for_the_moment_under_the_pointer_and_a_drag_for_those_it_passes(desk):
    picture(desk, RECORDED)
    left, top, right, bottom = desk.panel.places["seek"]
    asked = []
    for share, pressed in ((0.25, True), (0.5, True), (0.9, True), (3.0, True), (3.0, False)):
        desk.panel.move(left + share * (right - left), 0.5 * (top + bottom))
        show(desk, RECORDED)
        desk.panel.button(pressed)
        asked += show(desk, RECORDED)
    assert {request.kind for request in asked} == {"seek"}
    assert sorted({round(request.value, 2) for request in asked}) == pytest.approx(
        [1.0, 2.0, 3.6, 4.0], abs=0.03
    )


@pytest.mark.parametrize("kind", ["pause", "step", "back", "speed:0.1", "screenshot", "quit"])
def test_a_recording_is_played_and_turned_by_buttons(desk, kind):
    picture(desk, RECORDED)
    (asked,) = click(desk, kind, RECORDED)
    assert asked == (Request("speed", value=0.1) if kind == "speed:0.1" else Request(kind))


def test_a_recording_has_no_button_that_could_only_mean_a_hand(desk):
    picture(desk, RECORDED)
    assert not {"emergency", "reset", "record", "scenes"} & set(desk.panel.places)


def test_the_moment_stands_where_its_share_of_the_run_is(desk):
    for now in (0.5, 2.0, 3.7):
        image = picture(desk, replace(RECORDED, timeline=RECORDED.timeline._replace(now=now)))
        left, top, right, bottom = map(int, desk.panel.places["seek"])
        dark = like(image[top + 2 : bottom - 2, left:right], INK, 40).all(axis=0)
        assert np.flatnonzero(dark).mean() == pytest.approx(now / 4.0 * (right - left), abs=2)


def test_the_force_stands_where_its_share_of_the_run_is(desk):
    force = np.array([0.0, 2.0, 1.0, 0.0])

    def pictured(force):
        line = RECORDED.timeline._replace(seconds=np.arange(4.0), force=force)
        image = picture(desk, replace(RECORDED, timeline=line))
        left, top, right, bottom = map(int, desk.panel.places["seek"])
        return image[top + 2 : bottom - 2], left, right

    (risen, left, right), (flat, _, _) = pictured(force), pictured(0.0 * force)
    higher = (np.abs(risen - flat).sum(axis=2) > 20).sum(axis=0)
    columns = np.flatnonzero(higher)
    assert [columns[0], columns[-1]] == pytest.approx(
        [left + s * (right - left) for s in (0.25, 0.75)], abs=2
    )
    # the height is the force's
    middles = [round(left + s * (right - left)) for s in (0.375, 0.625)]
    assert higher[middles[0]] == pytest.approx(2 * higher[middles[1]], abs=3)


@pytest.mark.parametrize("name", CHANGES)
def test_every_part_of_the_state_is_seen(desk, name):
    changed = picture(desk, replace(STATE, **{name: CHANGES[name]}))
    assert (np.abs(changed - picture(desk)).max(axis=2) > 20).sum() > 20


def test_the_state_has_no_part_that_is_not_tested():
    # a list that must be opened to be seen: `scenes` by the list's own test, `keys` below
    assert {f.name for f in fields(PanelState)} == {*CHANGES, "scenes", "keys"}


def test_a_click_on_a_card_asks_for_its_scene_once_and_nothing_else_can_be_pressed(desk):
    state = replace(STATE, cards=CHANGES["cards"])
    picture(desk, state)
    assert set(desk.panel.places) == {"card:wire", "card:beams", "card:snap"}
    for name in ("beams", "snap", "wire"):
        assert click(desk, f"card:{name}", state) == [Request("scene", value=name)]


def test_a_card_shows_its_own_picture(desk):
    state = replace(STATE, cards=CHANGES["cards"])
    image = picture(desk, state)
    for card in state.cards:
        left, top, right, bottom = map(int, desk.panel.places[f"card:{card.name}"])
        upper = image[top + 8 : (top + bottom) // 2, left + 8 : right - 8]
        if card.picture is not None:
            assert like(upper, card.picture[0, 0] / 255, 4).mean() > 0.95


def test_cards_stand_side_by_side_without_overlap_in_any_width(desk):
    cards = tuple(Card(f"scene {k}", f"{k}", "words " * 9, "all") for k in range(7))
    picture(desk, replace(STATE, cards=cards))
    boxes = np.array([desk.panel.places[f"card:scene {k}"] for k in range(7)])
    assert (boxes[:, 0] >= 0).all() and (boxes[:, 2] <= WIDTH).all()
    for k, (left, top, right, bottom) in enumerate(boxes):
        others = np.delete(boxes, k, axis=0)
        beside = (others[:, 2] <= left) | (others[:, 0] >= right)
        above = (others[:, 3] <= top) | (others[:, 1] >= bottom)
        assert (beside | above).all()


def test_the_list_of_keys_shows_its_lines(desk):
    opened = replace(STATE, help=True)
    longer = replace(opened, keys=(*STATE.keys, ("q", "quit")))
    assert (picture(desk, opened) != picture(desk, longer)).any()


def test_a_curve_has_its_colour_and_rises_where_its_numbers_do(desk):
    rising = Plot("force", "N", SECONDS, {"norm": SECONDS})
    rows, columns = np.nonzero(like(plot_of(desk, rising), palette.SERIES[0]))
    assert len(rows) > 100
    # a straight line: rows fall as columns grow
    assert np.corrcoef(rows, columns)[0, 1] < -0.99


def test_a_limit_is_drawn_once_the_curve_comes_near_it(desk):
    def red(level):
        plot = Plot("force", "N", SECONDS, {"norm": np.full(200, level)}, 3.0)
        image = plot_of(desk, plot)
        return (image[..., 0] - image[..., 1] > 60).sum()

    assert red(0.1) == 0
    assert red(2.0) > 50


def test_the_force_bar_fills_with_the_share_of_the_limit(desk):
    def blue(force):
        return like(picture(desk, replace(STATE, force=force, plots=())), palette.HAND_FORCE).sum()

    none, quarter, half = blue(0.0), blue(0.25 * 3.3), blue(0.5 * 3.3)
    assert half - none == pytest.approx(2 * (quarter - none), rel=0.05)


def test_letters_grow_with_the_density_of_the_pixels(context):
    widths = []
    for scale in (1.0, 2.0):
        panel, frame = OffscreenPanel(1600, 900, scale), Framebuffer(1600, 900, 0)
        panel.attach()
        for _ in range(2):
            frame.bind()
            panel.begin()
            panel.draw(STATE)
            panel.end(1600, 900)
        widths.append((panel.covered, panel.em))
        panel.detach()
        frame.delete()
    assert np.divide(*widths[::-1]) == pytest.approx([2.0, 2.0], rel=0.01)


# ---- what must not break it


@pytest.mark.parametrize(
    "state",
    [
        PanelState(),
        replace(STATE, force=NAN, force_limit=NAN, elapsed=NAN),
        replace(STATE, force=np.inf, force_limit=0.0),
        replace(STATE, loops=(LoopReading("", NAN, 0.0),)),
        replace(STATE, knobs={"": (Setting("a", "", "%s %n", NAN), Setting("b", "", "", 1.0, 1.0, 1.0))}),
        replace(STATE, knobs={"100 %s": (Setting("a", "%n", "%", 0.5, help="%s%n"),)}),
        replace(
            STATE,
            knobs={"g": (Setting("a", "a", "", 0.5, -1.0, 1.0, log=True), Setting("c", "c", "", "x"))},
        ),
        replace(STATE, plots=(Plot("", "", np.zeros(0), {}),)),
        replace(STATE, plots=(Plot("p", "N", np.zeros(0), {"a": np.zeros(0)}, NAN),)),
        replace(STATE, plots=(Plot("p", "N", SECONDS, {"a": np.full(200, NAN)}, 1.0),)),
        replace(STATE, plots=(Plot("p", "N", SECONDS, {"a": np.full(200, np.inf), "b": np.ones(3)}),)),
        replace(STATE, plots=(Plot("p", "N", np.ones(1), {"a": np.ones(1)}),)),
        replace(STATE, plots=(Plot("same", "N", SECONDS, {"a": SECONDS}),) * 2),
        replace(STATE, status="%s%n " * 100, messages=("%n",) * 500, recording_path="/long" * 100),
        replace(STATE, legend=(), keys=(), help=True),
        replace(STATE, hint=Hint("", (), (NAN, NAN))),
    ],
)
def test_no_state_breaks_the_panel(desk, state):
    picture(desk, state)
    assert click(desk, "emergency", state) == [Request("emergency")]


WITHOUT_IMGUI = """
import sys
sys.modules["imgui_bundle"] = None
from palpo.render.panel import Panel, RenderUnavailable
try:
    Panel()
except RenderUnavailable as why:
    print(why)
assert Panel.missing()
"""


def test_without_the_library_one_sentence_says_what_to_install():
    done = subprocess.run([sys.executable, "-c", WITHOUT_IMGUI], capture_output=True, text=True, check=True)
    lines = done.stdout.strip().splitlines()
    assert len(lines) == 1
    assert "palpo[window]" in lines[0]
    assert lines[0].endswith(".")


# ---- the legend's lines


def test_the_legend_tells_the_scale_of_arrows_by_the_length_that_they_have_in_the_picture():
    nodes = np.array([[0.0, 0.0, 0.0], [0.2, 0.0, 0.0]])
    geometry = make_geometry([Drawable("wire", "tube", 0, 2, radius=0.01)], nodes)
    camera, height, em, scale = Camera((0.1, 0.0, 0.0), 1.0, 0.0, 0.0), 800, 15.0, 0.07
    state = SceneState(nodes, hand_force=np.array([1.0, 0.0, 0.0]))
    (entry,) = [
        e for e in legend_entries(geometry, state, camera, Overlays(), scale, height, em) if e.mark == "arrow"
    ]
    newtons = float(entry.words.split(",")[1].removesuffix("N"))
    ends = camera.project([[0.0, 0.0, 0.0], [scale * newtons, 0.0, 0.0]], 1000, height)
    assert entry.length * em == pytest.approx(ends[1, 0] - ends[0, 0])
    # round numbers are at most a factor of 2.5 apart
    assert ARROW / 2.5 < entry.length <= ARROW


@pytest.mark.parametrize("share", [NAN, 0.4, 1.0, 1.4])
def test_the_legend_warns_of_a_strain_beyond_its_limit_and_of_no_other(share):
    points = np.zeros((3, 3))
    geometry = make_geometry([Drawable("body", "surface", 0, 3)], points)
    state = SceneState(points, strained=share)
    said = [
        e
        for e in legend_entries(geometry, state, Camera(), Overlays(), 1.0, 800, 15.0)
        if "strained" in e.words
    ]
    assert [e.colour for e in said] == ([palette.BAD] if share > 1.0 else [])


def test_the_legend_shows_the_ends_of_the_colour_bar_of_the_frame():
    nodes = np.array([[0.0, 0.0, 0.0], [0.2, 0.0, 0.0]])
    geometry = make_geometry([Drawable("wire", "tube", 0, 2, radius=0.01)], nodes)
    state = SceneState(nodes, scalar=np.zeros(2), scalar_kind=STRAIN, scalar_range=np.array([0.0, 0.5]))
    for shown in (True, False):
        entries = legend_entries(geometry, state, Camera(), Overlays(strain=shown), 1.0, 800, 15.0)
        bars = [e for e in entries if e.mark == "bar"]
        assert [(e.lower, e.upper) for e in bars] == [(0.0, 0.5)] * shown


# ---- where legend and hints stand


def test_a_fine_mesh_counts_no_more_than_a_coarse_one_of_its_size():
    """A box hides least where it hides least of the picture, however many vertices lie there."""
    fine = np.random.default_rng(0).uniform(0.0, 0.3, (4000, 2))
    coarse = np.stack(np.meshgrid(*2 * [np.arange(0.61, 1.0, 0.04)]), axis=-1).reshape(-1, 2)
    points = evenly(np.vstack([fine, coarse]), 0.04)
    counts = [np.count_nonzero(points.max(axis=1) < 0.4), np.count_nonzero(points.max(axis=1) > 0.4)]
    assert counts[0] < 0.8 * counts[1], "the smaller area counts for less"
    places = ((0.0, 0.0), (0.5, 0.5))
    assert freest(places, 0.5, 0.5, points) == 0
    assert freest(places, 0.5, 0.5, points, [1000, 0]) == 1


def test_a_line_crosses_the_points_beside_it_and_none_beyond_its_ends():
    points = np.array([[0.5, 0.05], [0.5, 0.2], [-0.05, 0.0], [-0.2, 0.0], [1.2, 0.0]])
    assert crossed(np.zeros(2), np.array([1.0, 0.0]), points, 0.1) == 2
    assert crossed(np.zeros(2), np.zeros(2), points, 0.1) == 1


def test_a_hint_draws_no_line_across_what_is_seen(desk):
    u, v = np.meshgrid(np.linspace(0.0, WIDTH / HEIGHT, 60), np.linspace(0.0, 1.0, 60))
    everywhere, nothing = np.stack([u, v], axis=-1).reshape(-1, 2), np.zeros((0, 2))
    at, drawn = (0.1, 0.3), []
    for seen in (everywhere, nothing):
        state = replace(STATE, hint=Hint("Take the tool", ("drag it",), at), seen=seen, legend=())
        shown, plain = (picture(desk, one).astype(int) for one in (state, replace(state, hint=None)))
        bottom = round((at[1] * HEIGHT) + 4 * desk.panel.em)
        drawn.append(bool((np.abs(shown - plain).max(axis=2) > 60)[bottom : bottom + 20].any()))
    assert drawn == [False, True]
