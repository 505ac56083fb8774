"""Bytes to records and back: frames, Iggy commands, managed commands, CBOR. No state, no sockets."""
