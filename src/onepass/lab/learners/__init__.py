"""Online learners: mistakes on streams of examples; the sketch of a growing kernel matrix."""
