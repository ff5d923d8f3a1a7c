"""Hooks: commands of the user's or the project's that run on an event, and what their answers change."""
