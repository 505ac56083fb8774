"""The same ticket on this desk, on plain Python, DBOS, LangGraph and Restate: killed, counted from outside, side by side."""
