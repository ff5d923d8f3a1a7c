"""The session store in PostgreSQL, for sessions on several machines and for teams."""
