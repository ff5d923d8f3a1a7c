"""The default store: one SQLite database in the user's data folder."""
