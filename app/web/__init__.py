"""A window and its panel as a page in a browser, by viser: `palpo serve` shows runs and recordings on it."""
