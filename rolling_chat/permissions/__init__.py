"""Permission rules: which calls run without a question, and which never run."""
