"""The small ASGI application in front of Django: it reads bodies within limits and holds what waits.

Django stays synchronous, on a few threads with kept database connections. A request that waits for
a change costs neither: it is held here, and passed to Django again once there is something new.
"""
