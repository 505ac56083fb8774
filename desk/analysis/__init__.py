"""Log and views into pandas: timeline, turns, journal, bill, rewind, charts. No widgets."""
