"""Use cases of a tenant's configuration.

Each makes what is there what is wanted, so that a repeat changes nothing, and returns what it
changed. They run in their caller's transaction, since Django's admin and `apply` open their own.
"""
