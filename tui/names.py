"""The names of the themes, for who checks an option before anything of the dashboard is loaded."""

from __future__ import annotations

THEMES = ("dark", "light", "colour-blind", "terminal")
