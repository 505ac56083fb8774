"""Rounds as pure functions over a leg table: first rounds, insertion, closure, handover, windows."""
