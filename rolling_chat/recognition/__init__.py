"""Find the plan of a conversation by its first messages, whichever client sends it.

The gateway and the adapters for other frameworks share this code: they receive whole conversations without
any identifier.
"""
