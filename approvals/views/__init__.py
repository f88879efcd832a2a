"""The reviewer's pages: what waits, the decision, its record."""
