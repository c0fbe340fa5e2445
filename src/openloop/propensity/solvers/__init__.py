"""How propensity models are fitted: likelihoods and their maxima, on arrays."""
