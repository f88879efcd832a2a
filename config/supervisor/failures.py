class CannotStart(Exception):
    """Something outside the program is missing or taken; the text is the one line to print."""
