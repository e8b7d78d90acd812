"""Errors of sketched matrices: designs before the same rows."""
