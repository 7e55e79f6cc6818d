"""Scripts of at most 40 lines, from somebody's own task to its result."""
