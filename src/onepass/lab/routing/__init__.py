"""Prompts routed to language models within a budget."""
