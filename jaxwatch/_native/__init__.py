"""The native hot path; ``_core`` alone decides whether it is used."""
