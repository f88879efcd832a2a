"""Requests that a tool's declaration spells out: far ends that speak a protocol of their own.

`shape` finds every fault of a declaration, `filling` and `requests` make the request, `outcomes`
says what an answer proves, `scrubbing` takes secrets out of it, and `effect` does all of it in the
place of the executor `http`. What a placeholder puts in stays in its slot: a path segment, a
parameter, a field, a member or a header.
"""
