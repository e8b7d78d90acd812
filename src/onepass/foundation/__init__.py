"""What every family stands on: dispatch and compilation, linear algebra, argument checks, states as trees, files."""
