"""The settings and their sources, the model catalog, and themes."""

import logging

# without a log file the details are dropped; they must not reach the terminal
logging.getLogger(__name__).addHandler(logging.NullHandler())
