"""The prompt box's content and history: drafts with their pastes and files, and prompts sent before."""
