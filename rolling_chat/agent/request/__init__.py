"""The next request: what goes in, what the model can take, and how large it is."""
