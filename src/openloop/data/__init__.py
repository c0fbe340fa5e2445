"""LOG → FEEDBACK: reading files and dataframes, splitting, data sets, simulation."""
