"""Documentation, and the script that makes the part of it that follows from the code."""
