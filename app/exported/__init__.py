"""Laws of cups and connectors for other simulators: files that are copied out, and need no Palpo there.

Each imports NumPy, its simulator, and the law beside it.
"""

from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent


def copy_out(files: Sequence[str], folder: Path) -> None:
    """Copy these into a folder, where they find each other without the names of packages."""
    for file in files:
        text = (HERE / file).read_text("utf-8").replace(f"from {__name__}.", "from ")
        (folder / file).write_text(text, "utf-8")
