"""Web pages: the live pages of bandits, and the playground."""
