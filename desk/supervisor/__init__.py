"""Starts, watches, kills and restarts the processes of a desk. Knows their names, and nothing of tickets or vans."""
