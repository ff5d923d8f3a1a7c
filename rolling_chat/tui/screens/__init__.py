"""The screens: the start screen and the chat screen."""
