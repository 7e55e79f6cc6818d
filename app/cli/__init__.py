"""The command line: what a user types, and what a command prints."""
