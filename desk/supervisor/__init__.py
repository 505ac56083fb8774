"""Starts, watches, kills and restarts the desk's processes. Others import only `desk.supervisor.client`."""
