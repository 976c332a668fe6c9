"""Replaying: traces and scripted fixtures driven through the embedded manager."""
