"""What was shown: rankers and a log of any engine, in blocks of clusters, as a source of ShownMoments."""
