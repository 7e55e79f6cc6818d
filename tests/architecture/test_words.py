"""Messages, scenes and pages use the glossary's words, not those that it says are never used."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs" / "glossary.md"
ROOMS = ("app", "config", "haptics", "render")
PAGES = (ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md")))
PAGES = tuple(page for page in PAGES if page != GLOSSARY)


def rows() -> Iterator[tuple[str, list[str]]]:
    """Each word of the glossary with what is never said for it."""
    for line in GLOSSARY.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and len(cells) == 3 and cells[0] != "word":
            yield cells[0], [phrase.strip() for phrase in cells[2].split(",") if phrase.strip()]


WORDS = dict(rows())
NEVER = re.compile(
    r"(?<![\w-])(" + "|".join(re.escape(p) for never in WORDS.values() for p in never) + r")s?(?![\w-])",
    re.IGNORECASE,
)


def messages(source: str) -> list[str]:
    """The texts in a module that are neither docstrings nor comments; what is filled in reads as {}."""
    tree = ast.parse(source)
    silent = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    silent |= {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) and id(node) not in silent:
            found.append("".join(v.value if isinstance(v, ast.Constant) else "{}" for v in node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent:
            found.append(node.value)
    return found


def test_the_glossary_is_sorted_into_words_and_what_is_never_said():
    assert len(WORDS) > 30 and sum(map(len, WORDS.values())) > 15
    for word in ("tick", "slow step", "frame", "stale frame", "dropped contact", "excess energy"):
        assert word in WORDS
    assert not [word for word in WORDS if NEVER.search(word)]


@pytest.mark.parametrize("room", ROOMS)
def test_messages_use_the_glossary(room):
    wrong = [
        f"{path.relative_to(ROOT)}: {found[0]!r} in {text[:80]!r}"
        for path in sorted((ROOT / room).rglob("*.py"))
        for text in messages(path.read_text(encoding="utf-8"))
        if (found := NEVER.search(text))
    ]
    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_use_the_glossary(page):
    text = " ".join(page.read_text(encoding="utf-8").split())
    assert [text[max(0, m.start() - 40) : m.end() + 20] for m in NEVER.finditer(text)] == []


@pytest.mark.parametrize("scene", sorted((ROOT / "config" / "scenes").glob("*.toml")), ids=lambda f: f.stem)
def test_scenes_use_the_glossary(scene):
    assert NEVER.findall(scene.read_text(encoding="utf-8")) == []


def test_a_message_with_another_word_is_noticed():
    source = (
        '"""The low step."""\nf(x, f"a low {x} step")\nf("in 3 low steps", f"{n} contacts without room")\n'
    )
    found = [m[0] for text in messages(source) if (m := NEVER.search(text))]
    assert found == ["low steps", "contacts without room"]
