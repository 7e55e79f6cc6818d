"""Scenes, states and runs as a notebook shows them: a picture, or an animation, above a table."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from html import escape

from PIL import Image

from palpo.app.report.animation import animated
from palpo.app.report.draw import camera_of, drawn
from palpo.config.schema.view import View
from palpo.physics.exchange.snapshot import SceneGeometry, SceneState
from palpo.render.gl import RenderUnavailable
from palpo.render.overlays import Overlays

SIZE = 480, 320
"""Pixels of a picture, width and height."""
CELL = '<td style="text-align:left">'
MOMENTS = 48
"""Of an animation, at most."""


def as_html(title: str, rows: Mapping[str, object], picture: str = "") -> str:
    """A title, a picture, and a table of what is told."""
    lines = "".join(
        f"<tr>{CELL}{escape(name)}</td>{CELL}{escape(str(value))}</td></tr>" for name, value in rows.items()
    )
    return f"<div><b>{escape(title)}</b><br>{picture}<table>{lines}</table></div>"


def picture_of(geometry: SceneGeometry, states: Sequence[SceneState], view: View) -> str:
    """An image of a state, or an animation of several, for a page; in words where none can be."""
    shown = states[:: -(-len(states) // MOMENTS)]
    try:
        camera = camera_of(geometry, shown, view, SIZE[0] / SIZE[1])
        frames = list(drawn(geometry, shown, camera, SIZE, Overlays(labels=False)))
    except RenderUnavailable as missing:
        return f"<i>no picture: {escape(str(missing))}</i>"
    if len(frames) > 1:
        kind, data = "gif", animated(frames, [state.time for state in shown])
    else:
        file = io.BytesIO()
        Image.fromarray(frames[0]).save(file, "PNG")
        kind, data = "png", file.getvalue()
    code = base64.b64encode(data).decode("ascii")
    return f'<img src="data:image/{kind};base64,{code}" width="{SIZE[0]}" alt="the scene">'
