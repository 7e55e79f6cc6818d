"""Gymnasium environments. `import app.gym` makes them known, and so does the name of the module in front:

gymnasium.make("app.gym:palpo.snap-v0")
"""

import gymnasium

SNAP = "palpo.snap-v0"

gymnasium.register(SNAP, entry_point="app.gym.snap:SnapEnv", max_episode_steps=300)
