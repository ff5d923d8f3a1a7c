"""One turn: the loop, the reply, the tool calls, and what to do when a request does not fit."""
