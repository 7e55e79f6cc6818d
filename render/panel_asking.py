"""What was asked for in a frame of the panel, and where it drew what can be asked for."""

from collections.abc import Iterator
from contextlib import contextmanager

from imgui_bundle import ImVec2, imgui

from palpo.render.panel_style import Fonts
from palpo.render.requests import Request

Box = tuple[float, float, float, float]


class Asking:
    """Shared by the parts of the panel."""

    def __init__(self, fonts: Fonts) -> None:
        self.fonts = fonts
        self.requests: list[Request] = []
        self.places: dict[str, Box] = {}
        """Left, top, right and lower edge [points] of what was drawn, by kind or key of its request."""

    def begin(self) -> None:
        """A new frame."""
        self.requests, self.places = [], {}

    def ask(self, kind: str, key: str = "", value: object = None) -> None:
        """Somebody asked for this."""
        self.requests.append(Request(kind, key, value))

    def place(self, name: str) -> None:
        """Note where the last item is."""
        low, high = imgui.get_item_rect_min(), imgui.get_item_rect_max()
        self.places[name] = (low.x, low.y, high.x, high.y)

    def button(self, label: str, kind: str, width: float = 0.0, value: object = None) -> None:
        """A button that asks for `kind`; a width of 0 fits the label."""
        if imgui.button(label, ImVec2(width, 0)):
            self.ask(kind, value=value)
        self.place(kind if value is None else f"{kind}:{value}")

    @contextmanager
    def bold(self, size: float = 1.0) -> Iterator[None]:
        """Write so while the block runs."""
        imgui.push_font(self.fonts.bold, size * imgui.get_style().font_size_base)
        yield
        imgui.pop_font()
