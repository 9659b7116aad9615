"""What may have made a kind of bad rows."""
