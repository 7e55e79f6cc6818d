"""The tutorials and the README are scripts that run."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def pieces(page):
    """The Python of a page as one script, its lines where they stand on the page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    script, end = "", 0
    for found in re.finditer(r"```python\n(.*?)```", text, re.DOTALL):
        script += "\n" * text[end : found.start(1)].count("\n") + found[1]
        end = found.end(1)
    return script


def files(page):
    """The scene files of a page by the names in their first lines."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return {found[1]: found[2] for found in re.finditer(r"```toml\n# (\S+)\n(.*?)```", text, re.DOTALL)}


TUTORIALS = sorted(f"docs/tutorials/{page.name}" for page in (ROOT / "docs" / "tutorials").glob("*.md"))


@pytest.mark.parametrize("page", ["docs/tutorial.md", "README.md", *TUTORIALS])
def test_it_runs_as_it_stands(page, tmp_path, monkeypatch, capsys):
    script = pieces(page)
    assert script.count("\n") > 15
    monkeypatch.chdir(tmp_path)
    for name, text in files(page).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    exec(compile(script, page, "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out
