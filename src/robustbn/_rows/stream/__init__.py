"""Tables larger than memory: read in stretches, sampled once, judged once."""
