"""What the screen shows, as plain values without Textual: items, their fates, and the running turn."""
