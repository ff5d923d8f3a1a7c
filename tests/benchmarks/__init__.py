"""Figures, printed by `python -m tests.benchmarks`; no test asserts a time."""
