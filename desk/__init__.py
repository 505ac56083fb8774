"""Laser Desk: agents that survive being killed, taught on the real laser-sdk."""
