"""What only a lesson needs: start, show, check."""
