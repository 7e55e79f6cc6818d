"""Bad input to `palpo lift` gets a sentence and a status, before any work."""

import pytest

from palpo.app.cli.main import main


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["small", "ball"], "PARTNER ball: give plane, or cylinder:MM"),
        (["small", "cylinder:0"], "with a diameter above 0"),
        (["small", "cylinder:wide"], "as cylinder:120"),
        (["small", "plane", "--mass", "0"], "--mass 0: give one above 0"),
        (["small", "plane", "--tilt", "120"], "--tilt 120: give 0 to 90 degrees"),
        (["big", "plane"], "cup 'big' is unknown; there are small"),
        (["asymmetric", "plane"], "no solid of revolution"),
    ],
)
def test_it_says_which_key_is_wrong_and_what_would_be_right(words, said, tmp_path, capsys):
    assert main(["lift", *words, "--out", str(tmp_path)]) == 2
    assert said in capsys.readouterr().err
