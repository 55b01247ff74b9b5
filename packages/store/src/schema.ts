/**
 * What the file holds, as the list of steps that made it so. A step that was released is never edited: changes are new
 * steps at the end.
 *
 * Times, token counts and costs are REAL: SQLite keeps whole ones as compactly as integers, and none is ever too large to
 * be read back. Columns named `…_json` hold JSON, which also carries what is not valid Unicode.
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
]
