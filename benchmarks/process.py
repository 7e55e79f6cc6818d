"""A run of the command in a process of its own."""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any


def run_scene(scene: str, seconds: float, *options: str) -> dict[str, Any]:
    """`palpo run SCENE --headless --duration S`: its result, with the wall time [s] of the whole process.

    A run that failed has a result too, whose `exit_status` is not 0. Raises RuntimeError with the command's
    own words where there is none.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "result.json"
        command = [
            sys.executable,
            "-m",
            "palpo",
            "run",
            scene,
            "--headless",
            "--device",
            "mock",
            *options,
        ]
        begin = time.perf_counter()
        done = subprocess.run(
            [*command, "--duration", str(seconds), "--json", str(file)], capture_output=True, text=True
        )
        wall = time.perf_counter() - begin
        if not file.exists() or not file.stat().st_size:
            raise RuntimeError(f"palpo run {scene} ended with status {done.returncode}: {done.stderr[-400:]}")
        return json.loads(file.read_text("utf-8")) | {"wall_s": wall}
