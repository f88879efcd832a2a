"""What people see of runs, and what they do about them."""
