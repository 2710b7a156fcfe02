-- Format 2: a batch class has a floor of right answers per hour instead of a latency.
ALTER TABLE bursts ADD COLUMN tasks_per_hour_floor INTEGER;
