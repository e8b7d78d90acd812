"""Experiments that look for the best of five arms while the click rate that all arms share moves up and down."""
