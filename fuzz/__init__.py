"""Random damage to everything that is read; see `python -m fuzz --help`."""
