"""Finding the pass at fault: leaving passes out, bisecting their steps, making modules smaller."""
