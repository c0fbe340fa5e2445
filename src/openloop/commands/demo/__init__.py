"""What `openloop demo` does: estimates beside the truth, and a choice between three models."""
