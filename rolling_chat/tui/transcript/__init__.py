"""The transcript as rows: layout of items as lines, the viewport, and selection.

Nothing here knows Textual; `rolling_chat.tui.widgets.transcript` draws it.
"""
