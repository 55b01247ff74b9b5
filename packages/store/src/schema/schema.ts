/**
 * The schema of the file, as the list of its migrations. A released migration is never edited; a change is a new migration at the
 * end.
 *
 * Times, token counts and costs are REAL: SQLite stores whole ones as compactly as integers, and none is ever too large to be read
 * back. Columns named `…_json` hold JSON, which can also represent invalid Unicode.
 */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE sessions (
    -- Never given again, since turns refer to it for good.
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    name TEXT,
    created_at REAL NOT NULL,
    last_active_at REAL NOT NULL,
    message_count INTEGER NOT NULL
  ) STRICT;

  -- One row for all messages of a turn; 'up_to' is the session's message count with them.
  CREATE TABLE messages (
    session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    up_to INTEGER NOT NULL,
    messages_json TEXT NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX messages_by_session ON messages (session, up_to);

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
    idempotency TEXT
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX turns_unfinished ON turns (created_at) WHERE ended_at IS NULL;
  CREATE INDEX turns_with_cost ON turns (ended_at, cost_usd) WHERE cost_usd <> 0;
  CREATE INDEX turns_done_with_key ON turns (ended_at, idempotency) WHERE idempotency IS NOT NULL AND status = 'done';

  CREATE TABLE devices (
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    token_hash TEXT NOT NULL UNIQUE,
    created_at REAL NOT NULL,
    last_seen_at REAL,
    last_address TEXT,
    expires_at REAL
  ) STRICT;

  CREATE TABLE pairing_codes (
    hash TEXT NOT NULL UNIQUE,
    expires_at REAL NOT NULL
  ) STRICT;

  CREATE TABLE memories (
    number INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    content TEXT NOT NULL,
    category TEXT NOT NULL,
    updated_at REAL NOT NULL
  ) STRICT;
  CREATE INDEX memories_by_time ON memories (updated_at);
  CREATE VIRTUAL TABLE memory_words USING fts5 (
    key, content, content = 'memories', content_rowid = 'number', tokenize = 'unicode61 remove_diacritics 2'
  );
  CREATE TRIGGER memories_added AFTER INSERT ON memories BEGIN
    INSERT INTO memory_words (rowid, key, content) VALUES (new.number, new.key, new.content);
  END;
  CREATE TRIGGER memories_removed AFTER DELETE ON memories BEGIN
    INSERT INTO memory_words (memory_words, rowid, key, content) VALUES ('delete', old.number, old.key, old.content);
  END;
  CREATE TRIGGER memories_changed AFTER UPDATE ON memories BEGIN
    INSERT INTO memory_words (memory_words, rowid, key, content) VALUES ('delete', old.number, old.key, old.content);
    INSERT INTO memory_words (rowid, key, content) VALUES (new.number, new.key, new.content);
  END;

  -- Keys are UTF-16, most significant byte first.
  CREATE TABLE key_values (
    owner TEXT NOT NULL,
    key BLOB NOT NULL,
    value_json TEXT NOT NULL,
    PRIMARY KEY (owner, key)
  ) STRICT, WITHOUT ROWID;
  `,
  `
  CREATE TABLE inbox (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    -- The first half of a SHA-256 of what makes a message run once: channel, account and its id there.
    key BLOB NOT NULL UNIQUE,
    channel TEXT NOT NULL,
    account TEXT NOT NULL,
    message_id TEXT NOT NULL,
    sender TEXT NOT NULL,
    session TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'pending',
    attempts INTEGER NOT NULL DEFAULT 0,
    received_at REAL NOT NULL,
    next_at REAL,
    ended_at REAL,
    turn_id TEXT,
    error TEXT,
    verdict TEXT NOT NULL,
    -- The row that keeps the body of the request, where several messages came in one.
    batch INTEGER,
    -- Null once retention has dropped it, as is 'raw'.
    message_json TEXT,
    raw BLOB
  ) STRICT;
  CREATE INDEX inbox_by_state ON inbox (state) WHERE state <> 'done';
  CREATE INDEX inbox_by_end ON inbox (ended_at) WHERE ended_at IS NOT NULL;
  CREATE INDEX inbox_with_content ON inbox (number) WHERE state = 'done' AND message_json IS NOT NULL;
  CREATE INDEX inbox_by_batch ON inbox (batch) WHERE batch IS NOT NULL AND state <> 'done';

  -- One row: what the contents of all inbox rows up to a number take.
  CREATE TABLE inbox_size (
    up_to INTEGER NOT NULL,
    bytes INTEGER NOT NULL
  ) STRICT;
  INSERT INTO inbox_size VALUES (0, 0);

  -- Values of providers that stand in no second request, by the first half of a SHA-256.
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
    error TEXT
  ) STRICT;
  CREATE INDEX outbox_by_state ON outbox (state) WHERE state <> 'sent';
  CREATE INDEX outbox_by_end ON outbox (ended_at) WHERE ended_at IS NOT NULL;
  CREATE INDEX outbox_by_message ON outbox (inbox) WHERE inbox IS NOT NULL;

  -- The message it answers: such a turn is taken up again by the inbox.
  ALTER TABLE turns ADD COLUMN inbox INTEGER;
  DROP INDEX turns_unfinished;
  CREATE INDEX turns_unfinished ON turns (created_at) WHERE ended_at IS NULL AND inbox IS NULL;
  `,
  `
  ALTER TABLE outbox ADD COLUMN extras_json TEXT;
  ALTER TABLE inbox ADD COLUMN draft TEXT;

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
    UNIQUE (run_id, step_id)
  ) STRICT;
  CREATE INDEX approvals_by_state ON approvals (state);
  CREATE INDEX approvals_unsettled ON approvals (number) WHERE settled_at IS NULL;
  CREATE INDEX approvals_by_settlement ON approvals (settled_at) WHERE settled_at IS NOT NULL;

  -- Messages that ask. They outlive their rows in the outbox, since an answer may refer to one long after it was sent.
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
    run_json TEXT NOT NULL
  ) STRICT;
  CREATE INDEX sop_runs_by_sop ON sop_runs (sop);
  CREATE INDEX sop_runs_active ON sop_runs (sop) WHERE ended_at IS NULL;
  CREATE INDEX sop_runs_unfinished ON sop_runs (number) WHERE ended_at IS NULL;
  CREATE INDEX sop_runs_by_end ON sop_runs (ended_at) WHERE ended_at IS NOT NULL;

  -- When a run of each procedure last ended; the run itself may be forgotten.
  CREATE TABLE sop_ends (
    sop TEXT PRIMARY KEY,
    ended_at REAL NOT NULL
  ) STRICT, WITHOUT ROWID;

  -- What became of an event that may come again.
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

  -- 'sqlite_sequence' knows the number of the last record even if somebody cuts that record off.
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
  -- An insert that replaces would delete without asking the trigger above.
  CREATE TRIGGER sop_audit_keeps_order BEFORE INSERT ON sop_audit WHEN new.number <= (SELECT max(number) FROM sop_audit) BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
  END;
  `,
  `
  -- The span that received a message, and the one that says a reply, as W3C Trace Context; null where nobody traces.
  ALTER TABLE inbox ADD COLUMN trace TEXT;
  ALTER TABLE outbox ADD COLUMN trace TEXT;
  `,
  `
  -- What a token may do. The defaults are for rows from before there were roles; new rows name theirs.
  ALTER TABLE devices ADD COLUMN role TEXT NOT NULL DEFAULT 'operator';
  ALTER TABLE pairing_codes ADD COLUMN role TEXT NOT NULL DEFAULT 'operator';
  `,
  `
  -- The SHA-256 of the tool call that is decided, and the device it is made for; null for what is no tool call.
  ALTER TABLE approvals ADD COLUMN call_hash TEXT;
  ALTER TABLE approvals ADD COLUMN owner TEXT;
  `,
  `
  -- When an earlier release's file was brought to a newer schema: retention deletes nothing in the first days after it.
  CREATE TABLE upgrades (
    at REAL NOT NULL,
    from_schema INTEGER NOT NULL
  ) STRICT;
  `,
  `
  -- Memories get owners. An empty owner: written before this, readable for every client until an operator assigns it.
  CREATE TABLE owned_memories (
    number INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    key TEXT NOT NULL,
    content TEXT NOT NULL,
    category TEXT NOT NULL,
    updated_at REAL NOT NULL,
    UNIQUE (owner, key)
  ) STRICT;
  INSERT INTO owned_memories SELECT number, '', key, content, category, updated_at FROM memories;
  -- The index over words refers to the rows by their numbers, which stay.
  DROP TABLE memories;
  ALTER TABLE owned_memories RENAME TO memories;
  CREATE INDEX memories_by_time ON memories (updated_at);
  CREATE TRIGGER memories_added AFTER INSERT ON memories BEGIN
    INSERT INTO memory_words (rowid, key, content) VALUES (new.number, new.key, new.content);
  END;
  CREATE TRIGGER memories_removed AFTER DELETE ON memories BEGIN
    INSERT INTO memory_words (memory_words, rowid, key, content) VALUES ('delete', old.number, old.key, old.content);
  END;
  CREATE TRIGGER memories_changed AFTER UPDATE OF key, content ON memories BEGIN
    INSERT INTO memory_words (memory_words, rowid, key, content) VALUES ('delete', old.number, old.key, old.content);
    INSERT INTO memory_words (rowid, key, content) VALUES (new.number, new.key, new.content);
  END;
  `,
  `
  -- Nobody answers for a turn that has ended: what people were asked about it is withdrawn in the same commit.
  CREATE TRIGGER approvals_of_ended_turns AFTER UPDATE OF ended_at ON turns WHEN old.ended_at IS NULL AND new.ended_at IS NOT NULL BEGIN
    UPDATE approvals SET state = 'cancelled', decided_by = 'system', decided_at = new.ended_at
    WHERE run_id = new.id AND gate = 'tool' AND state = 'pending';
  END;
  `,
  `
  CREATE INDEX approvals_by_owner ON approvals (owner) WHERE owner IS NOT NULL;
  `,
  `
  -- When it was said; of what was said before this step, when its turn ended, or else when its session was last active.
  ALTER TABLE messages ADD COLUMN at REAL;
  CREATE INDEX turns_by_messages ON turns (session, up_to) WHERE session IS NOT NULL;
  UPDATE messages SET at = (
    SELECT ended_at FROM turns WHERE turns.session = messages.session AND turns.up_to = messages.up_to AND turns.session IS NOT NULL);
  UPDATE messages SET at = (SELECT last_active_at FROM sessions WHERE number = messages.session) WHERE at IS NULL;
  DROP INDEX turns_by_messages;
  CREATE INDEX messages_by_time ON messages (at);
  CREATE INDEX sessions_by_activity ON sessions (last_active_at, id);
  CREATE INDEX turns_by_end ON turns (ended_at) WHERE ended_at IS NOT NULL;

  -- What turns cost that are no longer kept, by the quarter of an hour they ended in, counted from 1970.
  CREATE TABLE costs (
    quarter INTEGER PRIMARY KEY,
    usd REAL NOT NULL
  ) STRICT;

  -- A question that is not bound to the call it shows is withdrawn; its turn asks again.
  UPDATE approvals SET state = 'cancelled', decided_by = 'system', decided_at = created_at
  WHERE gate = 'tool' AND state = 'pending' AND call_hash IS NULL;

  -- The size of the whole file is what counts now.
  DROP TABLE inbox_size;
  -- Words of deleted memories leave the index with them.
  INSERT INTO memory_words (memory_words, rank) VALUES ('secure-delete', 1);
  `,
  `
  -- When an operator replayed it last: from then on it is retried for a limited time.
  ALTER TABLE inbox ADD COLUMN replayed_at REAL;
  ALTER TABLE outbox ADD COLUMN replayed_at REAL;
  `,
  `
  -- The device whose passkey a token was issued for; null for a device that was paired.
  ALTER TABLE devices ADD COLUMN issued_by TEXT;
  -- Devices that were revoked: their passkeys are good for nothing any more.
  CREATE TABLE revoked_devices (
    id TEXT PRIMARY KEY,
    revoked_at REAL NOT NULL
  ) STRICT, WITHOUT ROWID;
  `,
  `
  -- An installation that an earlier release used: the procedures in its workspace, which ran without being agreed to, go on.
  INSERT INTO key_values (owner, key, value_json)
  SELECT 'sop', x'${Buffer.from('agree_to_workspace', 'utf16le').swap16().toString('hex')}', 'true' FROM pragma_user_version WHERE user_version > 0;
  `,
  `
  -- A page of one channel, in one state or in all, is read without looking at the rows of others.
  CREATE INDEX inbox_done_by_channel ON inbox (channel) WHERE state = 'done';
  CREATE INDEX outbox_sent_by_channel ON outbox (channel) WHERE state = 'sent';
  DROP INDEX inbox_by_state;
  CREATE INDEX inbox_by_state ON inbox (state, channel) WHERE state <> 'done';
  DROP INDEX outbox_by_state;
  CREATE INDEX outbox_by_state ON outbox (state, channel) WHERE state <> 'sent';
  `,
  `
  -- The sender of the message that led to the question, whose bare word answers it; null where there is none.
  ALTER TABLE approvals ADD COLUMN person TEXT;
  `,
  `
  -- Every start of a kept turn. 'attempts' leaves out those that only went on waiting for a person.
  ALTER TABLE turns ADD COLUMN starts INTEGER NOT NULL DEFAULT 0;
  UPDATE turns SET starts = attempts;
  `,
  `
  -- What a message is, decided when it arrives, and the approval that a text answers. A null kind: decided when it is worked on.
  ALTER TABLE inbox ADD COLUMN kind TEXT;
  ALTER TABLE inbox ADD COLUMN approval_run_id TEXT;
  ALTER TABLE inbox ADD COLUMN approval_step_id TEXT;
  UPDATE inbox SET kind = 'approval_reply' WHERE substr(session, 1, 9) = 'approval:';
  -- Earlier releases kept the approval in the session, percent-encoded: 'approval:<channel>/<run>/<step>'.
  WITH RECURSIVE
    replies (number, coded) AS (
      SELECT number, substr(session, instr(session, '/') + 1) FROM inbox WHERE kind = 'approval_reply' AND session LIKE '%/%/%'
    ),
    parts (number, is_step, coded) AS (
      SELECT number, 0, substr(coded, 1, instr(coded, '/') - 1) FROM replies
      UNION ALL SELECT number, 1, substr(coded, instr(coded, '/') + 1) FROM replies
    ),
    decoding (number, is_step, rest, bytes) AS (
      SELECT number, is_step, coded, '' FROM parts
      UNION ALL SELECT number, is_step,
        CASE substr(rest, 1, 1) WHEN '%' THEN substr(rest, 4) ELSE substr(rest, 2) END,
        bytes || CASE substr(rest, 1, 1) WHEN '%' THEN substr(rest, 2, 2) ELSE hex(substr(rest, 1, 1)) END
      FROM decoding WHERE rest <> ''
    ),
    decoded (number, is_step, id) AS (SELECT number, is_step, CAST(unhex(bytes) AS TEXT) FROM decoding WHERE rest = '')
  UPDATE inbox SET approval_run_id = run.id, approval_step_id = step.id
  FROM decoded AS run, decoded AS step
  WHERE run.number = inbox.number AND NOT run.is_step AND step.number = inbox.number AND step.is_step;
  `,
  `
  -- How the answer of a turn ended, such as at the limit of output tokens; null when the answer is complete.
  ALTER TABLE turns ADD COLUMN finish_reason TEXT;
  `,
  `
  -- The leases that processes hold: a lease is held while its row exists. Epochs are never used twice.
  CREATE TABLE leases (
    epoch INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    -- The shards that it covers; null for a lease without shards.
    shard_from INTEGER,
    shard_to INTEGER,
    taken_at REAL NOT NULL
  ) STRICT;

  -- 1 when a caller asked the process that runs the turn to abort it.
  ALTER TABLE turns ADD COLUMN abort_requested INTEGER NOT NULL DEFAULT 0;
  CREATE INDEX turns_to_abort ON turns (id) WHERE abort_requested AND ended_at IS NULL;
  `,
  `
  -- The agent of a turn, and of the costs of turns that are no longer kept.
  ALTER TABLE turns ADD COLUMN agent TEXT NOT NULL DEFAULT 'main';
  CREATE TABLE costs_of_agents (
    quarter INTEGER NOT NULL,
    agent TEXT NOT NULL,
    usd REAL NOT NULL,
    PRIMARY KEY (quarter, agent)
  ) STRICT, WITHOUT ROWID;
  INSERT INTO costs_of_agents SELECT quarter, 'main', usd FROM costs;
  DROP TABLE costs;
  ALTER TABLE costs_of_agents RENAME TO costs;
  -- The id of a session without its agent, for lists of the sessions of a device or a sender with every agent.
  ALTER TABLE sessions ADD COLUMN key TEXT
    GENERATED ALWAYS AS (CASE WHEN id GLOB 'agent:[a-z0-9-]*/*' THEN substr(id, instr(id, '/') + 1) ELSE id END) VIRTUAL;
  CREATE INDEX sessions_by_key ON sessions (key);
  `,
  `
  -- The keys that unfinished turns hold.
  CREATE INDEX turns_holding_key ON turns (idempotency) WHERE idempotency IS NOT NULL AND ended_at IS NULL;
  `,
  `
  -- The summary in force of the oldest messages of a session.
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
  `,
  `
  -- The admitted turns of clients and pools with a limit. 'id' is the turn, or 'inbox:<number>' for a message.
  CREATE TABLE admissions (
    id TEXT NOT NULL,
    client TEXT NOT NULL,
    -- The shard of the turn.
    shard INTEGER NOT NULL,
    at REAL NOT NULL,
    -- 1 until the turn or the message ends.
    open INTEGER NOT NULL,
    PRIMARY KEY (id, client)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX admissions_by_client ON admissions (client, at);
  CREATE INDEX admissions_open ON admissions (client) WHERE open;
  CREATE INDEX admissions_ended ON admissions (at) WHERE NOT open;
  CREATE TRIGGER admissions_of_ended_messages AFTER UPDATE OF ended_at ON inbox WHEN old.ended_at IS NULL AND new.ended_at IS NOT NULL BEGIN
    UPDATE admissions SET open = 0 WHERE id = 'inbox:' || new.number;
  END;
  CREATE TRIGGER admissions_of_stored_turns AFTER UPDATE OF ended_at ON turns WHEN old.ended_at IS NULL AND new.ended_at IS NOT NULL BEGIN
    UPDATE admissions SET open = 0 WHERE id = new.id;
  END;
  CREATE TRIGGER admissions_of_other_turns AFTER INSERT ON turns WHEN new.ended_at IS NOT NULL BEGIN
    UPDATE admissions SET open = 0 WHERE id = new.id;
  END;

  -- The cost of the model calls of clients and pools with a limit, by the day in UTC, counted from 1970.
  CREATE TABLE spending (
    client TEXT NOT NULL,
    day INTEGER NOT NULL,
    usd REAL NOT NULL,
    PRIMARY KEY (client, day)
  ) STRICT, WITHOUT ROWID;

  -- Who a limit or the breaker of loops holds back, and when that was news last.
  CREATE TABLE held_back (
    client TEXT NOT NULL,
    cause TEXT NOT NULL,
    since REAL NOT NULL,
    until REAL NOT NULL,
    news REAL NOT NULL,
    PRIMARY KEY (client, cause)
  ) STRICT, WITHOUT ROWID;

  -- The consecutive messages of a session that each came right after an answer, up to the message 'number'.
  CREATE TABLE loops (
    session TEXT PRIMARY KEY,
    number INTEGER NOT NULL,
    quick INTEGER NOT NULL,
    -- The time of the last answer that it followed.
    answered_at REAL NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX loops_by_number ON loops (number);
  -- Contents of messages that a limit refused are dropped first when room is short.
  CREATE INDEX inbox_limited ON inbox (number) WHERE state = 'limited' AND message_json IS NOT NULL;
  `,
  `
  -- The position of an admission among those of its client, so that a limit reads one row, however many turns it allows.
  ALTER TABLE admissions ADD COLUMN place INTEGER NOT NULL DEFAULT 0;
  UPDATE admissions SET place = numbered.place
    FROM (SELECT id, client, row_number() OVER (PARTITION BY client ORDER BY at) AS place FROM admissions) AS numbered
    WHERE admissions.id = numbered.id AND admissions.client = numbered.client;
  DROP INDEX admissions_by_client;
  CREATE INDEX admissions_by_place ON admissions (client, place, at);
  `,
  `
  -- The slim row of a message. It has one body: the request in 'raw', which the channel parses again, or the message in 'message_json'.
  -- An edited message stands in 'message_json' and replaces the one in 'raw'. A row that has both is of an earlier release or edited.
  -- Short columns come first. Numbers grow by themselves, and 'inbox_numbers' keeps those of deleted rows from being used again.
  CREATE TABLE slim_inbox (
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
    raw BLOB
  ) STRICT;
  INSERT INTO slim_inbox (
    number, key, state, attempts, received_at, next_at, ended_at, turn_id, error, kind, channel, account, sender, session, message_id,
    verdict, batch, trace, draft, replayed_at, approval_run_id, approval_step_id, message_json, raw
  ) SELECT
    number, key, state, attempts, received_at, next_at, ended_at, turn_id, error, kind, channel, account, sender, session, message_id,
    verdict, batch, trace, draft, replayed_at, approval_run_id, approval_step_id, message_json,
    -- Connections stored the message twice.
    CASE WHEN raw <> CAST(message_json AS BLOB) OR message_json IS NULL THEN raw END
  FROM inbox ORDER BY number;
  -- The highest number that was ever given when rows were last deleted.
  CREATE TABLE inbox_numbers (
    highest INTEGER NOT NULL
  ) STRICT;
  INSERT INTO inbox_numbers VALUES (coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'inbox'), 0));
  DROP TABLE inbox;
  ALTER TABLE slim_inbox RENAME TO inbox;
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
  `,
  `
  -- A page of the sessions of one device or channel, or of one sender, is read without looking at those of others. The tail is the last
  -- part of the key: the sender of a chat session.
  ALTER TABLE sessions ADD COLUMN owner TEXT GENERATED ALWAYS AS (substr(key, 1, instr(key, '/') - 1)) VIRTUAL;
  ALTER TABLE sessions ADD COLUMN tail TEXT GENERATED ALWAYS AS (replace(key, rtrim(key, replace(key, '/', '')), '')) VIRTUAL;
  CREATE INDEX sessions_by_owner ON sessions (owner, last_active_at, id);
  CREATE INDEX sessions_by_tail ON sessions (owner, tail);
  -- The same for ended runs in one state, for approvals, and for the newest memories of one owner.
  CREATE INDEX sop_runs_by_status ON sop_runs (json_extract(run_json, '$.status')) WHERE ended_at IS NOT NULL;
  CREATE INDEX sop_runs_by_sop_and_status ON sop_runs (sop, json_extract(run_json, '$.status')) WHERE ended_at IS NOT NULL;
  CREATE INDEX approvals_by_owner_and_state ON approvals (owner, state) WHERE owner IS NOT NULL;
  CREATE INDEX memories_by_owner_and_time ON memories (owner, updated_at);
  DROP INDEX memories_by_time;
  `,
  `
  -- What turns cost, took and used, by the quarter of an hour they ended in, counted from 1970: lists of costs do not read the turns, whose
  -- sums they are. An empty model: none is known.
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
  INSERT INTO costs_by_model
  SELECT CAST(ended_at / 900000 AS INTEGER), agent, coalesce(model, ''), total(cost_usd), count(*), total(input_tokens), total(output_tokens)
  FROM turns WHERE ended_at IS NOT NULL GROUP BY 1, 2, 3;
  INSERT INTO costs_by_model SELECT quarter, agent, '', usd, 0, 0, 0 FROM costs WHERE true
  ON CONFLICT DO UPDATE SET usd = usd + excluded.usd;
  CREATE TRIGGER costs_of_turns AFTER INSERT ON turns WHEN new.ended_at IS NOT NULL BEGIN
    INSERT INTO costs_by_model
    VALUES (CAST(new.ended_at / 900000 AS INTEGER), new.agent, coalesce(new.model, ''), new.cost_usd, 1, new.input_tokens, new.output_tokens)
    ON CONFLICT DO UPDATE SET usd = usd + excluded.usd, turns = turns + 1, input_tokens = input_tokens + excluded.input_tokens,
      output_tokens = output_tokens + excluded.output_tokens;
  END;
  CREATE TRIGGER costs_of_stored_turns AFTER UPDATE OF ended_at ON turns WHEN old.ended_at IS NULL AND new.ended_at IS NOT NULL BEGIN
    INSERT INTO costs_by_model
    VALUES (CAST(new.ended_at / 900000 AS INTEGER), new.agent, coalesce(new.model, ''), new.cost_usd, 1, new.input_tokens, new.output_tokens)
    ON CONFLICT DO UPDATE SET usd = usd + excluded.usd, turns = turns + 1, input_tokens = input_tokens + excluded.input_tokens,
      output_tokens = output_tokens + excluded.output_tokens;
  END;

  -- A page of the ended turns of one session or owner, or of the few in another state or of another agent than most.
  CREATE INDEX turns_by_session ON turns (session_id, ended_at) WHERE ended_at IS NOT NULL;
  CREATE INDEX turns_by_owner ON turns (owner, ended_at) WHERE ended_at IS NOT NULL;
  CREATE INDEX turns_by_status ON turns (status, ended_at) WHERE ended_at IS NOT NULL AND status <> 'done';
  CREATE INDEX turns_by_agent ON turns (agent, ended_at) WHERE ended_at IS NOT NULL AND agent <> 'main';

  -- The number of memories of each owner, who has at least one.
  CREATE TABLE memory_counts (
    owner TEXT PRIMARY KEY,
    count INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  INSERT INTO memory_counts SELECT owner, count(*) FROM memories GROUP BY owner;
  -- Without a conflict clause, which an outer statement such as UPDATE OR IGNORE would replace.
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
  `,
  `
  -- The statements that store an ended turn do this themselves: a trigger makes SQLite copy each page that an insert changes.
  DROP TRIGGER costs_of_turns;
  DROP TRIGGER admissions_of_other_turns;
  `,
  `
  -- Who may decide an approval: the decider that the tool declares, the standing of whoever asked, the sources of untrusted text, and the
  -- standing of the person who decided. Null for those of earlier releases.
  ALTER TABLE approvals ADD COLUMN decider TEXT;
  ALTER TABLE approvals ADD COLUMN standing TEXT;
  ALTER TABLE approvals ADD COLUMN sources_json TEXT;
  ALTER TABLE approvals ADD COLUMN decided_standing TEXT;
  `,
  `
  -- The status of a run, as its JSON has it; the order of its priority (0: low); and, only while a limit holds it back, the time of its event.
  ALTER TABLE sop_runs ADD COLUMN status TEXT;
  ALTER TABLE sop_runs ADD COLUMN rank INTEGER NOT NULL DEFAULT 1;
  ALTER TABLE sop_runs ADD COLUMN held_at REAL;
  UPDATE sop_runs SET status = json_extract(run_json, '$.status');
  DROP INDEX sop_runs_active;
  DROP INDEX sop_runs_by_status;
  DROP INDEX sop_runs_by_sop_and_status;
  CREATE INDEX sop_runs_active ON sop_runs (sop, status) WHERE ended_at IS NULL;
  CREATE INDEX sop_runs_waiting ON sop_runs (rank DESC, number) WHERE held_at IS NOT NULL;
  CREATE INDEX sop_runs_by_status ON sop_runs (status) WHERE ended_at IS NOT NULL;
  CREATE INDEX sop_runs_by_sop_and_status ON sop_runs (sop, status) WHERE ended_at IS NOT NULL;
  `,
  `
  -- Whether a reply was sent again after an answer that does not exclude that it had arrived.
  ALTER TABLE outbox ADD COLUMN repeated INTEGER NOT NULL DEFAULT 0;
  -- Platforms report later by their id of a message that they could not deliver it.
  CREATE INDEX outbox_by_provider_id ON outbox (provider_id) WHERE provider_id IS NOT NULL;
  `,
  `
  -- What turns that are no longer kept cost, took and used, in the rows of costs_by_model, which counts them, too.
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
  INSERT INTO dropped_costs
  SELECT quarter, agent, model, everything.usd - coalesce(kept.usd, 0), everything.turns - coalesce(kept.turns, 0),
    everything.input_tokens - coalesce(kept.input_tokens, 0), everything.output_tokens - coalesce(kept.output_tokens, 0)
  FROM costs_by_model AS everything
  LEFT JOIN (
    SELECT CAST(ended_at / 900000 AS INTEGER) AS quarter, agent, coalesce(model, '') AS model, total(cost_usd) AS usd, count(*) AS turns,
      total(input_tokens) AS input_tokens, total(output_tokens) AS output_tokens
    FROM turns WHERE ended_at IS NOT NULL GROUP BY 1, 2, 3
  ) AS kept USING (quarter, agent, model)
  -- A release that did not count turns has left sums alone, and differences of sums are not exact.
  WHERE everything.turns > coalesce(kept.turns, 0) OR everything.usd > coalesce(kept.usd, 0) + 0.000000001;
  DROP TABLE costs;
  CREATE TRIGGER costs_of_dropped_turns AFTER DELETE ON turns WHEN old.ended_at IS NOT NULL BEGIN
    INSERT INTO dropped_costs
    VALUES (CAST(old.ended_at / 900000 AS INTEGER), old.agent, coalesce(old.model, ''), old.cost_usd, 1, old.input_tokens, old.output_tokens)
    ON CONFLICT DO UPDATE SET usd = usd + excluded.usd, turns = turns + 1, input_tokens = input_tokens + excluded.input_tokens,
      output_tokens = output_tokens + excluded.output_tokens;
  END;
  `,
  `
  -- The number of a deleted message is not given again.
  CREATE TRIGGER inbox_numbers_of_dropped AFTER DELETE ON inbox BEGIN
    UPDATE inbox_numbers SET highest = old.number WHERE highest < old.number;
  END;
  `,
  `
  -- The model calls and tool calls of an ended turn, as a JSON array; null for none.
  ALTER TABLE turns ADD COLUMN steps_json TEXT;
  `,
  `
  -- Whether text of others may have led to a memory, which nobody knows of those of earlier releases. The index has the words and the parts
  -- of words that the release computes, and the owner as one word.
  ALTER TABLE memories ADD COLUMN untrusted INTEGER NOT NULL DEFAULT 1;
  ALTER TABLE memories ADD COLUMN words TEXT NOT NULL DEFAULT '';
  ALTER TABLE memories ADD COLUMN owner_word TEXT GENERATED ALWAYS AS ('o' || hex(owner)) VIRTUAL;
  DROP TRIGGER memories_added;
  DROP TRIGGER memories_removed;
  DROP TRIGGER memories_changed;
  DROP TABLE memory_words;
  UPDATE memories SET words = indexed_words(key, content);
  CREATE VIRTUAL TABLE memory_words USING fts5 (
    owner_word, words, content = 'memories', content_rowid = 'number', tokenize = 'unicode61 remove_diacritics 0'
  );
  -- Words of deleted memories leave the index with them.
  INSERT INTO memory_words (memory_words, rank) VALUES ('secure-delete', 1);
  INSERT INTO memory_words (rowid, owner_word, words) SELECT number, owner_word, words FROM memories;
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
  `,
  `
  -- The number of the message that got the words of this one.
  ALTER TABLE inbox ADD COLUMN joined INTEGER;
  CREATE INDEX inbox_by_joined ON inbox (joined) WHERE joined IS NOT NULL;
  `,
]
