"""The simulator on an NVIDIA GPU."""
