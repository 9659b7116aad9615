"""Files, frames and queries to columns, and columns to codes."""
