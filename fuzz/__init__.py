"""Coverage-guided fuzzing of everything that reads bytes from a client: python -m fuzz --help."""
