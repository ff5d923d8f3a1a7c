"""What users and projects add to the agent: skills and slash commands of their own. Read here, never run."""
