"""What was recorded from vLLM's manager, and that ours does the same."""
