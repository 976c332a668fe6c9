"""Readers of request traces: one module a format, each a stream of `Request`. Knows nothing of tiers or replays."""
