"""A person's pages of what runs without asking them."""
