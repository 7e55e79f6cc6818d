"""Claims that can fail: `scripts/break_claims.py` breaks their laws."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = importlib.util.spec_from_file_location("break_claims", ROOT / "scripts" / "break_claims.py")
assert SCRIPT is not None and SCRIPT.loader is not None
break_claims = importlib.util.module_from_spec(SCRIPT)
sys.modules["break_claims"] = break_claims
SCRIPT.loader.exec_module(break_claims)


@pytest.mark.parametrize("broken", break_claims.BREAKS, ids=lambda broken: broken.what)
def test_what_is_broken_stands_in_its_file_once(broken):
    text = (ROOT / broken.file).read_text("utf-8")
    assert broken.made_in(text) != text


def test_every_claim_of_stability_notices_a_broken_law(tmp_path: Path):
    study, copy = "snap-stability", break_claims.copied(tmp_path)
    whole = break_claims.claims_in(copy, study, 300.0)
    assert whole and all(whole.values())
    breaks = [broken for broken in break_claims.BREAKS if study in broken.studies]
    found = [break_claims.noticed(copy, broken, study, whole, 300.0) for broken in breaks]
    assert {name for names in found for name in names or ()} == set(whole)
