"""What an arm remembers, and what all arms remember together: estimators with the slots that keep them."""
