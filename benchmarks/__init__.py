"""Claims, measured: how far tables are from the truth, what it costs, and ours against peers."""
