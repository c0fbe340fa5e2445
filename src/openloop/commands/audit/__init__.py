"""What `openloop audit` does before it judges: the request, its files in memory or scanned, its models."""
