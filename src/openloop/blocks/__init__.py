"""Rows by user: sources are read once, dealt to buckets, and worked on in blocks by threads."""
