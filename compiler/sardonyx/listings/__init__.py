"""From node to machine code, line by line."""
