"""The dashboard: Textual over `session/`, which owns the replay and knows no Textual."""
