"""LOG + MODELS → MOMENTS: what is asked, what is summed, and where the rows are reduced."""
