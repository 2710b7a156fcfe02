-- Format 1: runs, bursts, attempts, tries. Durations are microseconds (_us), moments microseconds since the Unix epoch
-- (_unix_us, UTC). NULL is "not seen" or "not reported", never 0.

CREATE TABLE runs (
    run             TEXT PRIMARY KEY,      -- bursts fired by one command share it
    started_unix_us INTEGER NOT NULL,      -- begin of its first burst
    tool_version    TEXT NOT NULL
) STRICT;

CREATE TABLE bursts (
    burst            INTEGER PRIMARY KEY,  -- short key, used by attempts and tries
    id               TEXT NOT NULL UNIQUE, -- 20261130T160000.123456Z-lane-a-3f9c
    run              TEXT NOT NULL REFERENCES runs (run),
    lane             TEXT NOT NULL,
    kind             TEXT NOT NULL,        -- free-hosted, free-server, paid-hosted, self-hosted
    api              TEXT NOT NULL,
    model            TEXT NOT NULL,
    base_url         TEXT NOT NULL,
    task             TEXT NOT NULL,
    floor_us         INTEGER NOT NULL,
    attempts         INTEGER NOT NULL,     -- planned, warm-up apart
    concurrency      INTEGER,              -- NULL: all released together
    spacing_us       INTEGER NOT NULL,
    prompt_mode      TEXT NOT NULL,        -- nonce, identical
    connections      TEXT NOT NULL,        -- before, inside
    stream           INTEGER NOT NULL,     -- 0, 1
    max_retries      INTEGER NOT NULL,
    total_timeout_us INTEGER NOT NULL,
    seed             TEXT NOT NULL,        -- decimal; an unsigned 64-bit number does not fit INTEGER
    prompt_hash      TEXT NOT NULL,
    date             TEXT,                 -- local, YYYY-MM-DD
    "window"         TEXT,                 -- local begin, 16:00
    zone             TEXT,                 -- IANA zone of both
    started_unix_us  INTEGER NOT NULL,
    tool_version     TEXT NOT NULL,
    simulated        INTEGER NOT NULL,     -- 1: no measurement of a real lane
    -- known at the end; 'running' without the rest is a burst that is under way or was killed
    state            TEXT NOT NULL DEFAULT 'running',
    duration_us      INTEGER,
    peak_in_flight   INTEGER,
    max_skew_us      INTEGER,
    own_lag_p50_us   INTEGER,
    own_lag_p99_us   INTEGER,
    own_lag_max_us   INTEGER,
    body_bytes       INTEGER,
    finding          TEXT
) STRICT;
CREATE INDEX bursts_by_start ON bursts (started_unix_us);
CREATE INDEX bursts_by_run ON bursts (run);

-- The primary key is the promise that no attempt is recorded twice. Without rowid: one tree, written at its end.
CREATE TABLE attempts (
    burst              INTEGER NOT NULL REFERENCES bursts (burst),
    warmup             INTEGER NOT NULL,   -- 1: measured, never counted
    attempt            INTEGER NOT NULL,   -- number within the burst, from 0
    verdict            TEXT NOT NULL,      -- pass, too_slow, wrong_answer, failed, config_finding
    outcome            TEXT NOT NULL,      -- class of the last try: ok, rate_limited, timeout_idle, ...
    latency_us         INTEGER NOT NULL,   -- from intended start to the end, tries and waits included
    ttft_us            INTEGER,            -- the same for the first token of any kind
    first_answer_us    INTEGER,            -- the same for the first token that is no reasoning
    retries            INTEGER NOT NULL,
    skew_us            INTEGER NOT NULL,   -- how much later than intended the request began to be written
    intended_unix_us   INTEGER NOT NULL,
    prompt_tokens      INTEGER,            -- tokens as the last try reported them
    cached_tokens      INTEGER,
    cache_write_tokens INTEGER,
    completion_tokens  INTEGER,
    reasoning_tokens   INTEGER,
    finding            TEXT,               -- the request itself was at fault
    check_note         TEXT,               -- why the check refused the answer
    PRIMARY KEY (burst, warmup, attempt)
) STRICT, WITHOUT ROWID;

-- One HTTP exchange. Moments count from the last byte of its request sent; sent_us from the begin of the try.
CREATE TABLE tries (
    burst              INTEGER NOT NULL,
    warmup             INTEGER NOT NULL,
    attempt            INTEGER NOT NULL,
    try                INTEGER NOT NULL,   -- number within the attempt, from 0
    outcome            TEXT NOT NULL,
    http_status        INTEGER,
    http_version       TEXT,
    reused             INTEGER NOT NULL,   -- the connection had carried an earlier request
    dns_us             INTEGER,
    connect_us         INTEGER,
    tls_us             INTEGER,
    sent_us            INTEGER NOT NULL,
    first_byte_us      INTEGER,
    ttft_us            INTEGER,
    first_answer_us    INTEGER,
    last_token_us      INTEGER,
    end_us             INTEGER,
    last_byte_us       INTEGER,
    max_gap_us         INTEGER,
    body_bytes         INTEGER NOT NULL,
    output_chunks      INTEGER NOT NULL,
    reasoning_chunks   INTEGER NOT NULL,
    finish_reason      TEXT,
    prompt_tokens      INTEGER,
    cached_tokens      INTEGER,
    cache_write_tokens INTEGER,
    completion_tokens  INTEGER,
    reasoning_tokens   INTEGER,
    model              TEXT,               -- as named in the answer
    system_fingerprint TEXT,
    request_id         TEXT,
    streamed           INTEGER,
    bursty             INTEGER NOT NULL,
    in_band            INTEGER NOT NULL,
    retry_after_ms     INTEGER,
    redirects          INTEGER NOT NULL,
    clock_skew_ms      INTEGER,
    own_lag_us         INTEGER NOT NULL,
    message            TEXT,
    rate_limits        TEXT,               -- JSON: [["name", "value"], ...]; NULL: none
    tool_calls         TEXT,               -- JSON: [{"name": ..., "arguments": ...}, ...]; NULL: none
    content            TEXT NOT NULL,      -- cut to 2 KiB
    reasoning          TEXT NOT NULL,      -- cut to 2 KiB
    PRIMARY KEY (burst, warmup, attempt, try),
    FOREIGN KEY (burst, warmup, attempt) REFERENCES attempts (burst, warmup, attempt)
) STRICT, WITHOUT ROWID;

-- Counts per burst, for a person with sqlite3. Warm-up apart; findings count neither way.
CREATE VIEW burst_summary AS
SELECT b.id, b.date, b."window", b.lane, b.kind, b.task, b.model, b.simulated, b.state,
       b.attempts                                               AS planned,
       count(a.attempt)                                         AS made,
       count(*) FILTER (WHERE a.verdict = 'pass')               AS passed,
       count(*) FILTER (WHERE a.verdict = 'too_slow')           AS too_slow,
       count(*) FILTER (WHERE a.verdict = 'wrong_answer')       AS wrong_answer,
       count(*) FILTER (WHERE a.verdict = 'failed')             AS failed,
       count(*) FILTER (WHERE a.verdict = 'config_finding')     AS findings,
       count(*) FILTER (WHERE a.retries > 0)                    AS retried,
       coalesce(sum(a.retries), 0)                              AS retries,
       max(a.latency_us) FILTER (WHERE a.verdict IN ('pass', 'too_slow')) / 1000.0 AS slowest_finished_ms,
       b.floor_us / 1000.0                                      AS floor_ms,
       datetime(b.started_unix_us / 1000000, 'unixepoch')       AS started_utc
FROM bursts b
LEFT JOIN attempts a ON a.burst = b.burst AND a.warmup = 0
GROUP BY b.burst
ORDER BY b.started_unix_us, b.burst;
