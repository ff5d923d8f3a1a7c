"""Adapters of the rolling window for other agent frameworks; each requires only its own framework."""
