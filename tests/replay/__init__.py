"""Tests of the replay: traces and scripted fixtures driven through the manager."""
