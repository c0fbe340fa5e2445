"""Log to Feedback: reading files and dataframes, splitting, data sets, simulation."""
