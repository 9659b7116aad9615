"""Values and algebra that every room may use: nothing here reads a file or passes over a table."""

__version__ = "0.1.0"
