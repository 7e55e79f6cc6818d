"""Laws of cups and connectors for other simulators: files that are copied out as they are, and need no Palpo.

Each imports NumPy, its simulator, and the law beside it; `app/report/gripper.py` copies them.
"""
