"""vLLM's own configuration read as a topology: what vLLM 0.33.0 would make of it, and what it would not say."""
