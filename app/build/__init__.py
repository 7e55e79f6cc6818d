"""From a scene file to the physics that the loops run."""
