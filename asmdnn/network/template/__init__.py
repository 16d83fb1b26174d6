"""What planning a model for one shape decided, as a recipe for others."""
