"""Programs that run published models; each is a page of code, and README.md says what they show."""
