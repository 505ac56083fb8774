"""Benchmarks of the embedded stack and what they wrote. Nothing here is part of the product."""
