"""Takes each guard away and shows that its test goes red: `python -m tests.guards`.

A test that stays green without the guard it is there for proves nothing. Each guard of
`catalogue.py` is removed from a database, or out of the code, of a session of its own, and only
its tests are run.
"""
