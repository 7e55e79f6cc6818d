"""What `import palpo` offers: scenes, models, states, runs."""
