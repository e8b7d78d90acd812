"""Faces for other packages, one file each, imported only when they are asked for."""
