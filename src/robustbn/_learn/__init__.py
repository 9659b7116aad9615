"""The default method: which rows to trust, and the tables of those that are."""
