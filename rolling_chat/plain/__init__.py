"""The chat as plain lines, for screen readers: no full screen, no bars, one line per change."""
