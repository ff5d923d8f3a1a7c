"""The chat as plain lines, for screen readers: no full screen, no bars, every change a line of its own."""
