"""A run or a benchmark as one page of HTML, and what a benchmark's JSON holds."""
