"""What an append causes, inside the append's own transaction: views, change feed, memory, sessions."""
