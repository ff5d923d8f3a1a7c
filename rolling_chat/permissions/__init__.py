"""Permission rules, which decide the calls that run without asking and those that never run."""
