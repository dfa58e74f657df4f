"""What pages show, computed from the event log."""
