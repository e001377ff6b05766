"""Speed, memory and agreement of each step of the flow. ``python -m benchmarks`` prints the bars; asv tracks them."""
