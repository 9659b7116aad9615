"""The page of a fit, its drawing and its figures."""
