"""Routing of prompts to language models within a budget of dollars."""
