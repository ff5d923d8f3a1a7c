"""The terminal itself: its modes, its clipboard, its pastes, programs that borrow it, and its end."""
