"""What a run leaves: its result, why it stopped, its files."""
