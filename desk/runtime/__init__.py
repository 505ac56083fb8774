"""What every desk process shares: connecting, events, saved results, an agent's main."""
