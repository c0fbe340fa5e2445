"""What was shown: Impressions or a frame of them and rankers as a source of ShownMoments."""
