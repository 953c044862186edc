"""The command line.  One module per command; ``main`` loads only the one that is called."""
