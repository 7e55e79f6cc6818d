"""The tutorial and the README are scripts that run."""

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


@pytest.mark.parametrize("page", ["docs/tutorial.md", "README.md"])
def test_it_runs_as_it_stands(page, tmp_path, monkeypatch, capsys):
    script = pieces(page)
    assert script.count("\n") > 15
    monkeypatch.chdir(tmp_path)
    exec(compile(script, page, "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out
