"""The rolling window in other agent frameworks: one thin adapter each, which needs that framework only."""
