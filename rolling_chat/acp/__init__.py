"""The agent for editors that speak the Agent Client Protocol.

Only this package imports the protocol's library, which is an extra.
"""
