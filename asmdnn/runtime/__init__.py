"""Plans and their execution: schedules, the executor's contexts, threads, the proof of a plan."""
