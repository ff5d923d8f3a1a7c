"""The screens: the chat itself, and what opens above it."""
