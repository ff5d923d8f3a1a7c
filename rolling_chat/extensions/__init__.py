"""Extensions by users and projects: skills, slash commands and hooks. Read here, never run."""
