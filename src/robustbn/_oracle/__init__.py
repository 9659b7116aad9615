"""Which rows to trust. One file a method, over one shared spectral.py."""
