"""From the scores or posteriors of all arms to one arm, exactly and fast, and the probability of each choice."""
