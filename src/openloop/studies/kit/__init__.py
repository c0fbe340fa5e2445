"""What studies share: running, trials kept by content, results, pages and charts."""
