"""What all commands share: their options, what they print, and how they fail."""
