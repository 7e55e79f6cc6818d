"""The study of the plug's distance, with a training that only shows that it runs."""

import csv

import numpy as np
import pytest
from rich.console import Console

from palpo.app.cli.train_distance import Training
from palpo.physics.collision.distance_field import exact_field, signed_distance
from palpo.physics.collision.io import read_network
from palpo.physics.systems.snap.connectors.registry import generate
from palpo.studies import snap_collision
from palpo.studies.registry import run_study


def test_the_study_measures_every_distance_and_keeps_the_network(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setattr(snap_collision, "QUICK_TRAINING", Training(points=4000, steps=20, batch=64))
    monkeypatch.setattr(snap_collision, "SPACINGS", (2e-3, 1e-3))
    monkeypatch.setattr(snap_collision, "POINTS", (100, 1000))
    monkeypatch.setattr(snap_collision, "TIMED_POINTS", 1000)
    claims = run_study("snap-collision", tmp_path, quick=True, console=Console(quiet=True))
    assert all(np.isfinite(claim.value) for claim in claims)
    with (tmp_path / "errors.csv").open() as file:
        rows = {row["distance"]: row for row in csv.DictReader(file)}
    assert float(rows["exact"]["largest_um"]) == 0.0
    assert float(rows["grid 1 mm"]["rms_um"]) < float(rows["grid 2 mm"]["rms_um"])
    _, errors = read_network(tmp_path / "two-prong-64.npz", generate("two-prong").plug)
    # the same network on other points of the same shell
    assert float(rows["learned 64"]["rms_um"]) == pytest.approx(1e6 * errors.rms, rel=0.05)
    assert (tmp_path / "collision.png").stat().st_size > 10_000


def test_half_way_the_unsqueezed_socket_is_in_the_plug_but_no_deeper_than_the_interference():
    connector = generate("two-prong")
    p = snap_collision.socket_points(connector, 2000, np.random.default_rng(0))
    d, _ = signed_distance(exact_field(connector.plug), p)
    assert -connector.interference <= d.min() < 0.0
