"""What a person waits for at the screen, measured in a real pseudo-terminal read by an emulator."""
