"""A machine without EGL is told, in one sentence, what to install."""

import subprocess
import sys

WITHOUT_EGL = """
import ctypes, ctypes.util
real = ctypes.CDLL.__init__
def absent(self, name, *args, **kwargs):
    if name and ("EGL" in str(name) or "GL.so" in str(name)):
        raise OSError(f"{name}: cannot open shared object file")
    real(self, name, *args, **kwargs)
ctypes.CDLL.__init__ = absent
found = ctypes.util.find_library
ctypes.util.find_library = lambda name: None if "GL" in name else found(name)
import numpy as np
from palpo.physics.exchange.snapshot import Drawable, SceneState, make_geometry
from palpo.render.offscreen import RenderUnavailable, render_picture
points = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
try:
    render_picture(make_geometry([Drawable("wire", "tube", 0, 2, radius=0.1)], points), SceneState(points))
except RenderUnavailable as why:
    print(why)
"""


def test_without_egl_the_sentence_names_the_packages():
    done = subprocess.run([sys.executable, "-c", WITHOUT_EGL], capture_output=True, text=True, check=True)
    lines = done.stdout.strip().splitlines()
    assert len(lines) == 1
    assert "libegl1" in lines[0]
    assert lines[0].endswith(".")
