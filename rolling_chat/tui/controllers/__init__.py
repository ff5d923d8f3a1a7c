"""The screen's controllers: turns, commands, drafts, painting, the gauge's figures."""
