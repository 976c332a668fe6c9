"""Tests of the commands, run as users run them."""
