"""Tests of the array room, and the reference evaluator of graphs."""
