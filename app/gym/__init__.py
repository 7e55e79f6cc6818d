"""Gymnasium environments. `import palpo.app.gym` makes them known, and so does the module in front:

gymnasium.make("palpo.app.gym:palpo.snap-v0")
"""

import gymnasium

SNAP = "palpo.snap-v0"

gymnasium.register(SNAP, entry_point="palpo.app.gym.snap:SnapEnv", max_episode_steps=300)
