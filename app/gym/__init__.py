"""Gymnasium environments. `import palpo.app.gym` makes them known, and so does the module in front:

gymnasium.make("palpo.app.gym:palpo/Snap-v1")
gymnasium.make_vec("palpo.app.gym:palpo/Snap-v1", num_envs=16, vectorization_mode="vector_entry_point")
gymnasium.make("palpo.app.gym:palpo/Suction-v1")
gymnasium.make("palpo.app.gym:palpo/Pick-v1")
gymnasium.make("palpo.app.gym:palpo/Biopsy-v1")
"""

import gymnasium

gymnasium.register(
    "palpo/Snap-v1",
    entry_point="palpo.app.gym.snap:SnapEnv",
    vector_entry_point="palpo.app.gym.snap_batch:SnapVectorEnv",
    max_episode_steps=300,
)
gymnasium.register("palpo/Suction-v1", entry_point="palpo.app.gym.suction:SuctionEnv", max_episode_steps=500)
gymnasium.register("palpo/Pick-v1", entry_point="palpo.app.gym.pick:PickEnv", max_episode_steps=400)
gymnasium.register("palpo/Biopsy-v1", entry_point="palpo.app.gym.biopsy:BiopsyEnv", max_episode_steps=400)
