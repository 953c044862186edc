"""What became of a node, and why."""
