-- Format 3: campaigns, the slots of their plans with claims, events, and documents (decisions, counter-tests).
ALTER TABLE bursts ADD COLUMN stretch_us INTEGER;        -- a sustained stretch by the clock; NULL: a fixed number
ALTER TABLE bursts ADD COLUMN campaign TEXT;             -- NULL: a burst by hand
ALTER TABLE bursts ADD COLUMN site TEXT;                 -- where the configuration has several
ALTER TABLE bursts ADD COLUMN control_connect_us INTEGER; -- the control endpoint beside the burst
ALTER TABLE bursts ADD COLUMN control_first_byte_us INTEGER;
ALTER TABLE bursts ADD COLUMN control_status INTEGER;
ALTER TABLE bursts ADD COLUMN control_error TEXT;
CREATE INDEX bursts_by_campaign ON bursts (campaign);

CREATE TABLE campaigns (
    campaign        TEXT PRIMARY KEY,     -- hash of all that was locked: another plan is another campaign
    site            TEXT,
    started_unix_us INTEGER NOT NULL,     -- when it was begun for the first time
    tool_version    TEXT NOT NULL,
    locked          TEXT NOT NULL,        -- JSON: what was locked
    stopped_unix_us INTEGER,              -- NULL: it goes on
    stopped_why     TEXT                  -- budget, replaced, by hand
) STRICT;

-- One planned burst. The primary key is the promise that none is begun twice.
CREATE TABLE slots (
    campaign            TEXT NOT NULL REFERENCES campaigns (campaign),
    date                TEXT NOT NULL,    -- local, YYYY-MM-DD
    "window"            TEXT NOT NULL,    -- local begin, 16:00
    nth                 INTEGER NOT NULL, -- number within the window, from 0
    lane                TEXT NOT NULL,
    task                TEXT NOT NULL,
    due_unix_us         INTEGER NOT NULL,
    state               TEXT NOT NULL,    -- running, run, late, missed, before_start, interrupted
    reason              TEXT,             -- of a missed one: asleep, clock, not_running, busy, stalled
    started_unix_us     INTEGER,
    late_s              INTEGER,
    burst               TEXT,             -- id of the burst
    holder              TEXT,             -- process that runs it
    lease_until_unix_us INTEGER,          -- a running one past its lease was abandoned
    PRIMARY KEY (campaign, date, "window", nth, lane, task)
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
    event     INTEGER PRIMARY KEY,
    unix_us   INTEGER NOT NULL,
    campaign  TEXT,
    lane      TEXT,
    task      TEXT,
    kind      TEXT NOT NULL,              -- model_changed, fingerprint_changed, budget_stop, lane_gone, ...
    detail    TEXT NOT NULL               -- JSON object
) STRICT;
CREATE INDEX events_by_time ON events (unix_us);

CREATE TABLE documents (
    id              TEXT PRIMARY KEY,
    kind            TEXT NOT NULL,        -- decision, countertest
    created_unix_us INTEGER NOT NULL,
    changed_unix_us INTEGER NOT NULL,
    body            TEXT NOT NULL         -- JSON
) STRICT;
CREATE INDEX documents_by_kind ON documents (kind, created_unix_us);
