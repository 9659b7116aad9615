"""Speed, measured: ours against peers in one run, and our kernels against their goals."""
