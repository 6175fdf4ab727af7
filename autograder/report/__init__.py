"""What people and programs read of a graded batch."""
