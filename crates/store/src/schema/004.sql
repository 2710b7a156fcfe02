-- Format 4: calls of harnesses, as the measuring proxy saw them. No prompt and no answer is kept; `before` and `after`
-- are short pieces of two prompts where they part, with what looks like a secret taken out.
CREATE TABLE calls (
    call               INTEGER PRIMARY KEY,
    id                 TEXT NOT NULL UNIQUE,   -- process start and number: two proxies never make the same
    session            TEXT NOT NULL,
    session_by         TEXT NOT NULL,          -- path, header, field, prefix, new
    seq                INTEGER NOT NULL,       -- within the session, as that proxy counted, from 1
    harness            TEXT,                   -- User-Agent
    lane               TEXT,
    started_unix_us    INTEGER NOT NULL,
    path               TEXT NOT NULL,          -- at the upstream, without its query
    api                TEXT,
    model              TEXT,                   -- asked for
    request_bytes      INTEGER NOT NULL,
    tools              INTEGER NOT NULL,       -- offered
    sent_us            INTEGER NOT NULL,       -- from the first byte of the request to its last one sent on
    total_us           INTEGER NOT NULL,       -- to the last byte handed on
    estimated_prompt_tokens     INTEGER,       -- where the server reported none
    estimated_completion_tokens INTEGER,
    usage_injected     INTEGER NOT NULL,
    retry              INTEGER NOT NULL,       -- repeats of the same prompt before this one
    delivery           TEXT NOT NULL,          -- whole, client_left, drained, no_upstream
    gap                TEXT,                   -- what was not measured: request_too_long, busy, unreadable
    -- times below count from the last byte of the request sent on
    outcome            TEXT NOT NULL,
    http_status        INTEGER,
    http_version       TEXT,
    reused             INTEGER NOT NULL,
    dns_us             INTEGER,
    connect_us         INTEGER,
    tls_us             INTEGER,
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
    answered_model     TEXT,
    system_fingerprint TEXT,
    request_id         TEXT,
    streamed           INTEGER,
    bursty             INTEGER NOT NULL,
    in_band            INTEGER NOT NULL,
    retry_after_ms     INTEGER,
    clock_skew_ms      INTEGER,
    message            TEXT,
    rate_limits        TEXT,                   -- JSON: [["name", "value"], ...]; NULL: none
    tool_calls         TEXT,                   -- JSON: names of the tools called; NULL: none
    -- what a prefix cache could have served; sizes are bytes of the canonical prompt (docs/prefix.md)
    prompt_bytes       INTEGER,                -- NULL: the prompt was not measured
    segments           INTEGER,
    helper             INTEGER,
    former_seq         INTEGER,
    former_bytes       INTEGER,
    common_bytes       INTEGER,
    common_other_order_bytes INTEGER,
    exact              INTEGER,                -- 0: common_bytes counts whole 64-byte blocks
    best_bytes         INTEGER,
    best_seq           INTEGER,
    -- the first difference from the former prompt of the lineage
    break_segment      TEXT,
    break_path         TEXT,
    break_kind         TEXT,
    before             TEXT,
    after              TEXT
) STRICT;
CREATE INDEX calls_by_session ON calls (session, started_unix_us);
CREATE INDEX calls_by_time ON calls (started_unix_us);

-- One line per session, for a person with sqlite3.
CREATE VIEW session_summary AS
SELECT session, max(harness) AS harness, max(lane) AS lane,
       datetime(min(started_unix_us) / 1000000, 'unixepoch')           AS started_utc,
       count(*)                                                        AS calls,
       count(*) FILTER (WHERE helper = 1)                              AS helper_calls,
       count(*) FILTER (WHERE retry > 0)                               AS repeats,
       count(*) FILTER (WHERE outcome <> 'ok' AND delivery = 'whole')  AS failed,
       sum(prompt_tokens)                                              AS prompt_tokens,
       sum(cached_tokens)                                              AS cached_tokens,
       sum(completion_tokens)                                          AS completion_tokens,
       count(*) FILTER (WHERE common_bytes < former_bytes)             AS breaks,
       sum(former_bytes - common_bytes)                                AS lost_bytes
FROM calls
GROUP BY session
ORDER BY min(started_unix_us);
