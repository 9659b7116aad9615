"""Rows that can be passed over, wherever they live: in memory, in files, on a cluster."""
