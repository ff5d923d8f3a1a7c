"""The transcript as rows: items laid out as lines, what of them is in sight, and what is taken from them.

Nothing here knows Textual; `rolling_chat.tui.widgets.transcript` draws it.
"""
