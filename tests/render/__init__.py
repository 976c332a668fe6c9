"""What people see and scripts read."""
