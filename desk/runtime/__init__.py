"""What every desk process shares: its spec, its connection, its events, its saved results, its life and death."""
