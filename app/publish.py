"""A run's report: pictures of the scene, then the page."""

from pathlib import Path

from app.album import take_pictures
from app.machine import machine_info
from app.outcome import Outcome
from app.report import NO_PICTURES, write_report
from render.gl import RenderUnavailable


def publish(folder: Path, done: Outcome) -> Path:
    """Write the report; the page's path. A machine without OpenGL gets the sentence that says so."""
    pictures, why = [], NO_PICTURES
    try:
        if done.geometry is not None:
            pictures = take_pictures(done.geometry, done.states, done.view)
    except RenderUnavailable as missing:
        why = str(missing)
    return write_report(folder, done.result, done.series, pictures, done.config_text, machine_info(), why)
