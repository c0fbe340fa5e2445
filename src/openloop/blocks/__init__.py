"""Rows by user: sources read once, dealt to buckets of users, held in memory or on disk, and worked on in parallel."""
