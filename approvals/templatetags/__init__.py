"""What the pages' templates load."""
