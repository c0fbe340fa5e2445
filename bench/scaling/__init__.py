"""How time and memory grow: curves over rows, users, items, factors and threads, and the figures of them."""
