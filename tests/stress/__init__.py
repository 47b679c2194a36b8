"""The mechanism under stress: sites everywhere that all miss, that all hit, or that leave after a few instructions."""
