"""What people see in the terminal and scripts read as JSON. Shows decisions, makes none."""
