"""What others hear of a run while it lasts, and by which they may lead its tool."""
