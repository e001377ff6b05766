"""What lasts: model files and checkpoints."""
