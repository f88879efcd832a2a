"""What the database promises by itself, whatever the code above it forgets."""
