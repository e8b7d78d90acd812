"""What is learned on a design: so far ridge regression."""
