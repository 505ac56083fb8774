"""Kill at every write: the relay, the invariants, the report."""
