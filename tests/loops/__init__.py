"""Tests of the room that compiles whole loops."""
