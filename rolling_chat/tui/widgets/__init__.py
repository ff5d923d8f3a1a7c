"""The widgets of the chat screen; each draws a part of the state."""
