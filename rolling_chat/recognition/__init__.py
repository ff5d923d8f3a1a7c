"""Find the plan of a conversation by the messages that it begins with, whoever brings it and whenever.

What the gateway and the adapters of other frameworks share: both are handed whole conversations, and nothing
that says which is which.
"""
