"""A simulated news site: articles are published and withdrawn, and clicks arrive minutes after the decision."""
