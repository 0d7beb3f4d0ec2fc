"""What jaxwatch costs: ``python -m benchmarks``. Every figure is a ratio, or a difference, of interleaved runs."""
