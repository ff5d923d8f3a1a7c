"""Screens that open over the chat: pickers, texts, tables, the inspector, help."""
