"""What a person can do with a desk, as coroutines. No pandas, no widgets."""
