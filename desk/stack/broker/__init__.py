"""Streams, topics, the log, offsets, consumer groups and retention."""
