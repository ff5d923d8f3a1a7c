"""The agent in other people's windows: editors that speak the Agent Client Protocol.

Nothing else imports the protocol's package, which is an extra.
"""
