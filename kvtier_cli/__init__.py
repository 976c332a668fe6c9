"""kvtier: the debugger for tiered KV caches. Holds the version only, so that `--version` costs nothing."""

__version__ = "0.1.0"
