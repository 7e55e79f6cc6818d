"""What a run leaves behind: result, series, pictures and a page."""
