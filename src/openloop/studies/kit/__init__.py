"""What studies share: running, trials kept by content, results, statistics, pages and charts."""
