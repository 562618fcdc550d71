"""Records as real runs leave them, with what a test wants to find planted in them."""
