"""A part designer at Palpo's window: from an own STL file to a scene that was changed and saved, as JSON.

A process of its own on DISPLAY: `python -m tests.realtime.edit_session FOLDER`. What is done is counted.
"""

import sys
from pathlib import Path

import trimesh

from palpo.app.cli.new_scene import make_scene
from tests.realtime.desk_session import Person, main


class Designer(Person):
    """Chooses the part, changes its size, its place and its material, sees it, saves it."""

    clicks = 0

    def act(self, *words) -> None:
        self.clicks += sum(word in ("mouseup", "key") for word in words)
        super().act(*words)

    def live(self, folder: Path) -> None:
        self.running()
        camera, size = self.operator.controls.camera, self.operator.window.scene_size
        self.seen["at first"] = self.shown()
        # beside the probe
        x, y = camera.project([[0.025, 0.01, 0.01]], *size)[0]
        self.act("to", round(x), round(y), "mousedown", 3)
        self.act("mouseup", 3)
        self.until(lambda: "scale" in self.operator.panel.places, "the part's size in the panel")
        self.shoot(folder, "chosen")
        self.slide("scale", 0.7)
        self.shoot(folder, "larger")
        self.slide("z", 0.65)
        self.choose_material("ecoflex-00-30")
        self.seen["at last"] = self.shown()
        self.shoot(folder, "changed")
        self.act("key", "e")
        self.until(lambda: list(Path("out").glob("scene-*.toml")), "a saved scene")
        self.seen["clicks"] = self.clicks
        self.act("key", "q")

    def shown(self) -> list[float]:
        """Corners of the part in the picture's scene [m]."""
        part = next(d for d in self.operator._geometry.drawables if d.name == "part")
        points = self.operator._geometry.rest[part.span]
        return [*points.min(axis=0).tolist(), *points.max(axis=0).tolist()]

    def slide(self, name: str, share: float) -> None:
        """Take the slider's grab, which is in the middle, to a share of its way; wait for the scene."""
        old, boxes = self.session, []
        # the panel may be half drawn at any moment
        self.until(
            lambda: boxes.append(self.operator.panel.places.get(name)) or boxes[-1], f"{name} in the panel"
        )
        left, top, right, bottom = boxes[-1]
        y = round(0.5 * (top + bottom))
        self.act("to", round(0.5 * (left + right)), y)
        self.act("mousedown", 1)
        self.act("to", round(left + share * (right - left)), y)
        self.act("mouseup", 1)
        self.again(old)

    def choose_material(self, name: str) -> None:
        old = self.session
        self.click("material")
        self.until(lambda: f"material:{name}" in self.operator.panel.places, "the list of materials")
        self.click(f"material:{name}")
        self.again(old)

    def again(self, old: object) -> None:
        """Wait until another session runs."""
        self.until(lambda: self.session is not old, "the scene anew")
        self.running()
        self.look()


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    trimesh.creation.box((60.0, 20.0, 40.0)).export(folder / "part.stl")
    make_scene(
        str(folder / "part.stl"), str(folder / "part.toml"), "dragon-skin-20", "mm", "bottom", size=0.008
    )
    main(folder, Designer, str(folder / "part.toml"))
