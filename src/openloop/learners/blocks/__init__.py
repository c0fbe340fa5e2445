"""ROWS BY USER: where rows of a projected fit lie, in memory, on disk or on Spark, and what is asked of them."""
