"""The leaderboard: all policies on the paper's environments and the benchmarks of the field."""
