"""Screens that open over the chat and give an answer: pickers, texts, tables, the inspector, help."""
