"""Queries: compiled to SQL with bound parameters, run on a reader thread, paged."""
