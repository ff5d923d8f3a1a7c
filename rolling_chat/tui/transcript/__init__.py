"""The transcript: items, how they are drawn as lines, and the view.

Only `view`, `overlays` and `scroller` know Textual.
"""
