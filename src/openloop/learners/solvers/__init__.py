"""How factorisations are fitted: the objective, alternating least squares, L-BFGS."""
