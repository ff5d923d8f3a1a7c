"""The next request: its inputs, the model's limits, and its size."""
