"""A simulated news site: articles with features that come and go, and clicks that come late."""
