"""The tests of Rolling Chat."""

import sys

# what one worker compiled and rewrote is read by the others, also where the environment wants no such files
sys.dont_write_bytecode = False
