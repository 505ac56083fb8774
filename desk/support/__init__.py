"""The support desk: triage, resolver and billing, with their pure decisions."""
