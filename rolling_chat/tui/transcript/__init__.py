"""The transcript: items, how they are drawn as lines, and the view.

What lays out the rows, moves over them and takes text from them knows nothing of Textual; `view`, its
`scroller`, `drawer`, `overlays` and `marks` do.
"""
