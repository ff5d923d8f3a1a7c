"""Settings, where they come from, and writing them back; the model catalog; themes."""

import logging

# without a log file the details go nowhere, least of all to the terminal
logging.getLogger(__name__).addHandler(logging.NullHandler())
