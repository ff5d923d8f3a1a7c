"""The terminal: its modes, input, clipboard, notifications, programs that borrow it, and its loss."""
