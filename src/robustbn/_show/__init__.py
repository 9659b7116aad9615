"""What a fit found, in words and pictures."""
