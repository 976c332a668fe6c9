"""The panes of the dashboard. Each draws lines from a snapshot and posts messages; none knows the manager."""
