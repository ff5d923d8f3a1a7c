"""Confines what commands write, read and reach: by bubblewrap on Linux, by sandbox-exec on macOS."""
