"""HTML pages of runs and benchmarks, and the JSON format of benchmark results."""
