"""Rounds and how they change: pure functions over a table of road metres.

`metres(a, b)` is the way from place a to place b; it need not be symmetric. Nothing here knows the log or the clock.
"""
