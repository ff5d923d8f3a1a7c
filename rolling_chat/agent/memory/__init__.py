"""What of a long conversation the model still sees: summaries, pins, recall."""
