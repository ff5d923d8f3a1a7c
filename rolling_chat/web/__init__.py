"""The chat in a browser, on this machine only (extra `web`)."""
