"""Errors of sketched matrices: studies in which all designs append the same rows."""
