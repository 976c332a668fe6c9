"""The dashboard: its session without a screen, and the screens with a pilot."""
