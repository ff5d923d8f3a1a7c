"""The transcript: items, how they are drawn as lines, and the view that scrolls them."""
