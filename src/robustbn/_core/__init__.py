"""Values and algebra that every room may use: nothing here reads a file or passes over a table."""
