"""Peers measured on the same PostgreSQL; they live in an environment of their own."""
