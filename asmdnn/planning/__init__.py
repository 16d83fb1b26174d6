"""Plans as values: schedules, the proof of a plan, its form as bytes.  Nothing here runs."""
