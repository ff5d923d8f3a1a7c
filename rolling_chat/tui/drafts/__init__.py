"""What stands in the prompt box and what was sent from it: drafts, their pastes, their files, the history."""
