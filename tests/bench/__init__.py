"""Tests of the benchmarks' own arithmetic; the benchmarks themselves are run by hand."""
