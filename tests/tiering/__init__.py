"""Tests of the embedded manager, its filters and its topologies."""
