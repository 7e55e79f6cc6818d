"""Slow and exact ways to what `palpo.physics` computes, and models that only the studies compare with it."""
