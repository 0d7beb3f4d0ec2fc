"""Outlets of events: each is a function that takes one event. Users write their own the same way."""
