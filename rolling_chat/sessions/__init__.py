"""The session store: append-only messages, sessions, requests, search, export."""

import logging

# without a log file the details go nowhere, least of all to the terminal
logging.getLogger(__name__).addHandler(logging.NullHandler())
