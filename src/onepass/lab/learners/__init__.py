"""Online learners: their mistakes on streams of examples, and the sketch of a growing kernel matrix."""
