"""The neutral ticket once for each rival. Each file runs in that rival's own environment and is all its user writes."""
