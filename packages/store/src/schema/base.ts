/**
 * The whole schema of release 0.2.0, with which a new file begins: one pass instead of a rewrite of tables in every migration. A test
 * holds that it equals what the first `version` migrations of `schema.ts` make of an empty file. Later migrations run on top of it.
 */
export const BASE = {
  /** The number of migrations that it replaces. */
  version: 37,
  sql: `
  CREATE TABLE sessions (
    -- Never given again, since turns refer to it for good.
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    name TEXT,
    created_at REAL NOT NULL,
    last_active_at REAL NOT NULL,
    message_count INTEGER NOT NULL,
    key TEXT GENERATED ALWAYS AS (CASE WHEN id GLOB 'agent:[a-z0-9-]*/*' THEN substr(id, instr(id, '/') + 1) ELSE id END) VIRTUAL,
    owner TEXT GENERATED ALWAYS AS (substr(key, 1, instr(key, '/') - 1)) VIRTUAL,
    tail TEXT GENERATED ALWAYS AS (replace(key, rtrim(key, replace(key, '/', '')), '')) VIRTUAL
  ) STRICT;
  CREATE INDEX sessions_by_activity ON sessions (last_active_at, id);
  CREATE INDEX sessions_by_key ON sessions (key);
  CREATE INDEX sessions_by_owner ON sessions (owner, last_active_at, id);
  CREATE INDEX sessions_by_tail ON sessions (owner, tail);

  CREATE TABLE messages (
    session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    up_to INTEGER NOT NULL,
    messages_json TEXT NOT NULL,
    at REAL
  ) STRICT;
  CREATE UNIQUE INDEX messages_by_session ON messages (session, up_to);
  CREATE INDEX messages_by_time ON messages (at);

  CREATE TABLE turns (
    id TEXT PRIMARY KEY,
    session_id TEXT,
    owner TEXT,
    -- Where its messages are, if they are kept: 'input' and 'response' are then null where they stand there.
    session INTEGER,
    up_to INTEGER,
    source TEXT NOT NULL,
    status TEXT NOT NULL,
    input TEXT,
    response TEXT,
    model TEXT,
    error_json TEXT,
    input_tokens REAL NOT NULL DEFAULT 0,
    output_tokens REAL NOT NULL DEFAULT 0,
    cost_usd REAL NOT NULL DEFAULT 0,
    attempts REAL NOT NULL DEFAULT 0,
    created_at REAL NOT NULL,
    ended_at REAL,
    context_json TEXT,
    checkpoint_json TEXT,
    -- The SHA-256 of the idempotency key this turn was asked for with.
    idempotency TEXT,
    inbox INTEGER,
    starts INTEGER NOT NULL DEFAULT 0,
    finish_reason TEXT,
    abort_requested INTEGER NOT NULL DEFAULT 0,
    agent TEXT NOT NULL DEFAULT 'main',
    steps_json TEXT
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX turns_with_cost ON turns (ended_at, cost_usd) WHERE cost_usd <> 0;
  CREATE INDEX turns_done_with_key ON turns (ended_at, idempotency) WHERE idempotency IS NOT NULL AND status = 'done';
  CREATE INDEX turns_unfinished ON turns (created_at) WHERE ended_at IS NULL AND inbox IS NULL;
  CREATE TRIGGER approvals_of_ended_turns AFTER UPDATE OF ended_at ON turns WHEN old.ended_at IS NULL AND new.ended_at IS NOT NULL BEGIN
    UPDATE approvals SET state = 'cancelled', decided_by = 'system', decided_at = new.ended_at
    WHERE run_id = new.id AND gate = 'tool' AND state = 'pending';
  END;
  CREATE INDEX turns_by_end ON turns (ended_at) WHERE ended_at IS NOT NULL;
  CREATE INDEX turns_to_abort ON turns (id) WHERE abort_requested AND ended_at IS NULL;
  CREATE INDEX turns_holding_key ON turns (idempotency) WHERE idempotency IS NOT NULL AND ended_at IS NULL;
  CREATE TRIGGER admissions_of_stored_turns AFTER UPDATE OF ended_at ON turns WHEN old.ended_at IS NULL AND new.ended_at IS NOT NULL BEGIN
    UPDATE admissions SET open = 0 WHERE id = new.id;
  END;
  CREATE TRIGGER costs_of_stored_turns AFTER UPDATE OF ended_at ON turns WHEN old.ended_at IS NULL AND new.ended_at IS NOT NULL BEGIN
    INSERT INTO costs_by_model
    VALUES (CAST(new.ended_at / 900000 AS INTEGER), new.agent, coalesce(new.model, ''), new.cost_usd, 1, new.input_tokens, new.output_tokens)
    ON CONFLICT DO UPDATE SET usd = usd + excluded.usd, turns = turns + 1, input_tokens = input_tokens + excluded.input_tokens,
      output_tokens = output_tokens + excluded.output_tokens;
  END;
  CREATE INDEX turns_by_session ON turns (session_id, ended_at) WHERE ended_at IS NOT NULL;
  CREATE INDEX turns_by_owner ON turns (owner, ended_at) WHERE ended_at IS NOT NULL;
  CREATE INDEX turns_by_status ON turns (status, ended_at) WHERE ended_at IS NOT NULL AND status <> 'done';
  CREATE INDEX turns_by_agent ON turns (agent, ended_at) WHERE ended_at IS NOT NULL AND agent <> 'main';
  CREATE TRIGGER costs_of_dropped_turns AFTER DELETE ON turns WHEN old.ended_at IS NOT NULL BEGIN
    INSERT INTO dropped_costs
    VALUES (CAST(old.ended_at / 900000 AS INTEGER), old.agent, coalesce(old.model, ''), old.cost_usd, 1, old.input_tokens, old.output_tokens)
    ON CONFLICT DO UPDATE SET usd = usd + excluded.usd, turns = turns + 1, input_tokens = input_tokens + excluded.input_tokens,
      output_tokens = output_tokens + excluded.output_tokens;
  END;

  CREATE TABLE devices (
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    token_hash TEXT NOT NULL UNIQUE,
    created_at REAL NOT NULL,
    last_seen_at REAL,
    last_address TEXT,
    expires_at REAL,
    role TEXT NOT NULL DEFAULT 'operator',
    issued_by TEXT
  ) STRICT;

  CREATE TABLE pairing_codes (
    hash TEXT NOT NULL UNIQUE,
    expires_at REAL NOT NULL,
    role TEXT NOT NULL DEFAULT 'operator'
  ) STRICT;

  CREATE TABLE key_values (
    owner TEXT NOT NULL,
    key BLOB NOT NULL,
    value_json TEXT NOT NULL,
    PRIMARY KEY (owner, key)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE nonces (
    key BLOB PRIMARY KEY,
    until REAL NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX nonces_by_end ON nonces (until);

  CREATE TABLE outbox (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    channel TEXT NOT NULL,
    account TEXT NOT NULL,
    to_json TEXT NOT NULL,
    text TEXT NOT NULL,
    part INTEGER NOT NULL,
    parts INTEGER NOT NULL,
    client_id TEXT NOT NULL,
    -- The message it answers; that row may be gone already.
    inbox INTEGER,
    turn_id TEXT,
    state TEXT NOT NULL DEFAULT 'queued',
    attempts INTEGER NOT NULL DEFAULT 0,
    created_at REAL NOT NULL,
    next_at REAL,
    ended_at REAL,
    provider_id TEXT,
    error TEXT,
    extras_json TEXT,
    trace TEXT,
    replayed_at REAL,
    repeated INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE INDEX outbox_by_end ON outbox (ended_at) WHERE ended_at IS NOT NULL;
  CREATE INDEX outbox_by_message ON outbox (inbox) WHERE inbox IS NOT NULL;
  CREATE INDEX outbox_sent_by_channel ON outbox (channel) WHERE state = 'sent';
  CREATE INDEX outbox_by_state ON outbox (state, channel) WHERE state <> 'sent';
  CREATE INDEX outbox_by_provider_id ON outbox (provider_id) WHERE provider_id IS NOT NULL;

  CREATE TABLE approvals (
    -- In the order they were opened.
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT NOT NULL,
    step_id TEXT NOT NULL,
    gate TEXT NOT NULL,
    workflow TEXT NOT NULL,
    title TEXT NOT NULL,
    message TEXT NOT NULL,
    approve_json TEXT NOT NULL,
    reject_json TEXT NOT NULL,
    created_at REAL NOT NULL,
    expires_at REAL,
    token TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL DEFAULT 'pending',
    decided_by TEXT,
    feedback TEXT,
    decided_at REAL,
    settled_at REAL,
    call_hash TEXT,
    owner TEXT,
    person TEXT,
    decider TEXT,
    standing TEXT,
    sources_json TEXT,
    decided_standing TEXT,
    UNIQUE (run_id, step_id)
  ) STRICT;
  CREATE INDEX approvals_by_state ON approvals (state);
  CREATE INDEX approvals_unsettled ON approvals (number) WHERE settled_at IS NULL;
  CREATE INDEX approvals_by_settlement ON approvals (settled_at) WHERE settled_at IS NOT NULL;
  CREATE INDEX approvals_by_owner ON approvals (owner) WHERE owner IS NOT NULL;
  CREATE INDEX approvals_by_owner_and_state ON approvals (owner, state) WHERE owner IS NOT NULL;

  CREATE TABLE approval_prompts (
    outbox INTEGER PRIMARY KEY,
    approval INTEGER NOT NULL REFERENCES approvals ON DELETE CASCADE,
    channel TEXT NOT NULL,
    account TEXT NOT NULL,
    to_json TEXT NOT NULL,
    provider_id TEXT
  ) STRICT;
  CREATE INDEX approval_prompts_by_approval ON approval_prompts (approval);

  CREATE TABLE sop_runs (
    -- In the order they were started.
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    sop TEXT NOT NULL,
    ended_at REAL,
    run_json TEXT NOT NULL,
    status TEXT,
    rank INTEGER NOT NULL DEFAULT 1,
    held_at REAL
  ) STRICT;
  CREATE INDEX sop_runs_by_sop ON sop_runs (sop);
  CREATE INDEX sop_runs_unfinished ON sop_runs (number) WHERE ended_at IS NULL;
  CREATE INDEX sop_runs_by_end ON sop_runs (ended_at) WHERE ended_at IS NOT NULL;
  CREATE INDEX sop_runs_active ON sop_runs (sop, status) WHERE ended_at IS NULL;
  CREATE INDEX sop_runs_waiting ON sop_runs (rank DESC, number) WHERE held_at IS NOT NULL;
  CREATE INDEX sop_runs_by_status ON sop_runs (status) WHERE ended_at IS NOT NULL;
  CREATE INDEX sop_runs_by_sop_and_status ON sop_runs (sop, status) WHERE ended_at IS NOT NULL;

  CREATE TABLE sop_ends (
    sop TEXT PRIMARY KEY,
    ended_at REAL NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE sop_events (
    number INTEGER PRIMARY KEY,
    -- The first half of a SHA-256; null where only the idempotency key tells a repeat.
    key BLOB UNIQUE,
    at REAL NOT NULL,
    dispatch_json TEXT NOT NULL,
    -- The SHA-256 of the idempotency key it came with.
    idempotency TEXT
  ) STRICT;
  CREATE INDEX sop_events_by_time ON sop_events (at);
  CREATE INDEX sop_events_with_key ON sop_events (at, idempotency) WHERE idempotency IS NOT NULL;

  CREATE TABLE sop_audit (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    at REAL NOT NULL,
    sop TEXT NOT NULL,
    run TEXT,
    step INTEGER,
    by TEXT NOT NULL,
    reason TEXT,
    detail_json TEXT NOT NULL,
    previous TEXT NOT NULL,
    hash TEXT NOT NULL
  ) STRICT;
  CREATE INDEX sop_audit_by_run ON sop_audit (run) WHERE run IS NOT NULL;
  CREATE INDEX sop_audit_by_sop ON sop_audit (sop);
  CREATE TRIGGER sop_audit_keeps_records BEFORE UPDATE ON sop_audit BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
  END;
  CREATE TRIGGER sop_audit_keeps_all BEFORE DELETE ON sop_audit BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
  END;
  CREATE TRIGGER sop_audit_keeps_order BEFORE INSERT ON sop_audit WHEN new.number <= (SELECT max(number) FROM sop_audit) BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
  END;

  CREATE TABLE upgrades (
    at REAL NOT NULL,
    from_schema INTEGER NOT NULL
  ) STRICT;

  CREATE TABLE memories (
    number INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    key TEXT NOT NULL,
    content TEXT NOT NULL,
    category TEXT NOT NULL,
    updated_at REAL NOT NULL,
    untrusted INTEGER NOT NULL DEFAULT 1,
    words TEXT NOT NULL DEFAULT '',
    owner_word TEXT GENERATED ALWAYS AS ('o' || hex(owner)) VIRTUAL,
    UNIQUE (owner, key)
  ) STRICT;
  CREATE INDEX memories_by_owner_and_time ON memories (owner, updated_at);
  CREATE TRIGGER memory_counts_added AFTER INSERT ON memories BEGIN
    INSERT INTO memory_counts SELECT new.owner, 0 WHERE NOT EXISTS (SELECT 1 FROM memory_counts WHERE owner = new.owner);
    UPDATE memory_counts SET count = count + 1 WHERE owner = new.owner;
  END;
  CREATE TRIGGER memory_counts_removed AFTER DELETE ON memories BEGIN
    UPDATE memory_counts SET count = count - 1 WHERE owner = old.owner;
    DELETE FROM memory_counts WHERE owner = old.owner AND count = 0;
  END;
  CREATE TRIGGER memory_counts_moved AFTER UPDATE OF owner ON memories WHEN old.owner <> new.owner BEGIN
    INSERT INTO memory_counts SELECT new.owner, 0 WHERE NOT EXISTS (SELECT 1 FROM memory_counts WHERE owner = new.owner);
    UPDATE memory_counts SET count = count + 1 WHERE owner = new.owner;
    UPDATE memory_counts SET count = count - 1 WHERE owner = old.owner;
    DELETE FROM memory_counts WHERE owner = old.owner AND count = 0;
  END;
  CREATE TRIGGER memories_added AFTER INSERT ON memories BEGIN
    INSERT INTO memory_words (rowid, owner_word, words) VALUES (new.number, 'o' || hex(new.owner), new.words);
  END;
  CREATE TRIGGER memories_removed AFTER DELETE ON memories BEGIN
    INSERT INTO memory_words (memory_words, rowid, owner_word, words) VALUES ('delete', old.number, 'o' || hex(old.owner), old.words);
  END;
  CREATE TRIGGER memories_changed AFTER UPDATE OF owner, words ON memories BEGIN
    INSERT INTO memory_words (memory_words, rowid, owner_word, words) VALUES ('delete', old.number, 'o' || hex(old.owner), old.words);
    INSERT INTO memory_words (rowid, owner_word, words) VALUES (new.number, 'o' || hex(new.owner), new.words);
  END;

  CREATE TABLE revoked_devices (
    id TEXT PRIMARY KEY,
    revoked_at REAL NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE leases (
    epoch INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    -- The shards that it covers; null for a lease without shards.
    shard_from INTEGER,
    shard_to INTEGER,
    taken_at REAL NOT NULL
  ) STRICT;

  CREATE TABLE session_summaries (
    session INTEGER PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
    -- The message count of the session up to which it covers the messages.
    up_to INTEGER NOT NULL,
    -- The time of the last of these messages.
    up_to_at REAL NOT NULL,
    text TEXT NOT NULL,
    model TEXT NOT NULL,
    at REAL NOT NULL,
    -- 1 when a covered message has text from outside.
    untrusted INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX session_summaries_by_time ON session_summaries (up_to_at);

  CREATE TABLE admissions (
    id TEXT NOT NULL,
    client TEXT NOT NULL,
    -- The shard of the turn.
    shard INTEGER NOT NULL,
    at REAL NOT NULL,
    -- 1 until the turn or the message ends.
    open INTEGER NOT NULL,
    place INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (id, client)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX admissions_open ON admissions (client) WHERE open;
  CREATE INDEX admissions_ended ON admissions (at) WHERE NOT open;
  CREATE INDEX admissions_by_place ON admissions (client, place, at);

  CREATE TABLE spending (
    client TEXT NOT NULL,
    day INTEGER NOT NULL,
    usd REAL NOT NULL,
    PRIMARY KEY (client, day)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE held_back (
    client TEXT NOT NULL,
    cause TEXT NOT NULL,
    since REAL NOT NULL,
    until REAL NOT NULL,
    news REAL NOT NULL,
    PRIMARY KEY (client, cause)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE loops (
    session TEXT PRIMARY KEY,
    number INTEGER NOT NULL,
    quick INTEGER NOT NULL,
    -- The time of the last answer that it followed.
    answered_at REAL NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX loops_by_number ON loops (number);

  CREATE TABLE inbox (
    number INTEGER PRIMARY KEY,
    -- The first half of a SHA-256 of what makes a message run once: channel, account and its id there.
    key BLOB NOT NULL UNIQUE,
    state TEXT NOT NULL DEFAULT 'pending',
    attempts INTEGER NOT NULL DEFAULT 0,
    received_at REAL NOT NULL,
    next_at REAL,
    ended_at REAL,
    turn_id TEXT,
    error TEXT,
    -- Null: the worker classifies the message.
    kind TEXT,
    channel TEXT NOT NULL,
    account TEXT NOT NULL,
    sender TEXT NOT NULL,
    session TEXT NOT NULL,
    message_id TEXT NOT NULL,
    verdict TEXT NOT NULL,
    -- The row that has the body of the request, where several messages came in one.
    batch INTEGER,
    trace TEXT,
    draft TEXT,
    replayed_at REAL,
    -- The approval that the message answers.
    approval_run_id TEXT,
    approval_step_id TEXT,
    message_json TEXT,
    raw BLOB,
    joined INTEGER
  ) STRICT;
  CREATE INDEX inbox_by_state ON inbox (state, channel) WHERE state <> 'done';
  CREATE INDEX inbox_by_end ON inbox (ended_at) WHERE ended_at IS NOT NULL;
  CREATE INDEX inbox_with_content ON inbox (number) WHERE state = 'done' AND (message_json IS NOT NULL OR raw IS NOT NULL);
  CREATE INDEX inbox_limited ON inbox (number)
    WHERE state = 'limited' AND (message_json IS NOT NULL OR raw IS NOT NULL OR batch IS NOT NULL);
  CREATE INDEX inbox_by_batch ON inbox (batch) WHERE batch IS NOT NULL AND state <> 'done';
  CREATE INDEX inbox_done_by_channel ON inbox (channel) WHERE state = 'done';
  CREATE TRIGGER admissions_of_ended_messages AFTER UPDATE OF ended_at ON inbox WHEN old.ended_at IS NULL AND new.ended_at IS NOT NULL BEGIN
    UPDATE admissions SET open = 0 WHERE id = 'inbox:' || new.number;
  END;
  CREATE TRIGGER inbox_numbers_of_dropped AFTER DELETE ON inbox BEGIN
    UPDATE inbox_numbers SET highest = old.number WHERE highest < old.number;
  END;
  CREATE INDEX inbox_by_joined ON inbox (joined) WHERE joined IS NOT NULL;

  CREATE TABLE inbox_numbers (
    highest INTEGER NOT NULL
  ) STRICT;

  CREATE TABLE costs_by_model (
    quarter INTEGER NOT NULL,
    agent TEXT NOT NULL,
    model TEXT NOT NULL,
    usd REAL NOT NULL,
    turns INTEGER NOT NULL,
    input_tokens REAL NOT NULL,
    output_tokens REAL NOT NULL,
    PRIMARY KEY (quarter, agent, model)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE memory_counts (
    owner TEXT PRIMARY KEY,
    count INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE dropped_costs (
    quarter INTEGER NOT NULL,
    agent TEXT NOT NULL,
    model TEXT NOT NULL,
    usd REAL NOT NULL,
    turns INTEGER NOT NULL,
    input_tokens REAL NOT NULL,
    output_tokens REAL NOT NULL,
    PRIMARY KEY (quarter, agent, model)
  ) STRICT, WITHOUT ROWID;

  CREATE VIRTUAL TABLE memory_words USING fts5 (
    owner_word, words, content = 'memories', content_rowid = 'number', tokenize = 'unicode61 remove_diacritics 0'
  );

  INSERT INTO inbox_numbers VALUES (0);
  -- The words of a deleted memory leave the index with it.
  INSERT INTO memory_words (memory_words, rank) VALUES ('secure-delete', 1);
  `,
} as const
