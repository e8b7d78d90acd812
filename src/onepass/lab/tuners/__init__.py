"""Ask and tell: settings that pay, found in few trials."""
