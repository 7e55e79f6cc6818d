"""The site builds without a warning; a link that leads nowhere is one."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sphinx")
pytest.importorskip("myst_parser")

ROOT = Path(__file__).resolve().parents[2]


def test_the_only_warning_of_a_site_with_a_dead_link_is_of_it_and_ends_the_build(tmp_path):
    """So that the site as it is has none."""
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copytree(ROOT / "config" / "scenes" / "cards", tmp_path / "config" / "scenes" / "cards")
    for page in (*ROOT.glob("*.md"), ROOT / "CITATION.cff"):
        shutil.copy(page, tmp_path)
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "system-libs.sh", tmp_path / "scripts")
    with (tmp_path / "docs" / "snap.md").open("a", encoding="utf-8") as page:
        page.write("\nSee [what never was](never.md).\n")
    command = [sys.executable, "-m", "sphinx", "-q", "-n", "-W", "--keep-going", "-b", "html"]
    command += [str(tmp_path / "docs"), str(tmp_path / "site")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0
    assert "never.md" in done.stderr
    assert done.stderr.count("WARNING") == 1, done.stderr
    assert (tmp_path / "site" / "index.html").is_file()
