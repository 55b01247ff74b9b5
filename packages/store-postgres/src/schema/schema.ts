/**
 * The schema, as the list of its migrations. A released migration is never edited; a change is a new migration at the end.
 *
 * Releases N and N-1 run side by side, so that a migration only expands the schema: it adds tables, columns with defaults and indexes,
 * and changes nothing that the earlier release reads or writes. What release N no longer needs is removed by a migration with `contracts`
 * in release N+1; it waits until no process of a release before N is left.
 *
 * Times, token counts and costs are double precision. Columns named `…_json` hold JSON as text, which can also represent invalid
 * Unicode. Columns that are sorted or searched by prefix have the collation "C", which sorts by code point.
 */
import { indexedWords } from '@sluice/store/shared'
import type { All } from '../connection/connection.ts'

export interface Migration {
  readonly sql: string
  /** Changes the rows after the statements, in their transaction. */
  readonly fill?: (all: All) => Promise<void>
  /** The schema version of the first release that does without what this migration removes. Earlier releases can use the schema no more. */
  readonly contracts?: number
}

/** A text that sorts by code point. */
const T = 'text COLLATE "C"'

export const MIGRATIONS: readonly Migration[] = [
  {
    sql: `
  -- The processes that use the database. A lease is as alive as the last beat of its process.
  CREATE TABLE processes (
    id text PRIMARY KEY,
    -- The data directory or the configured name of the machine: a later process of a node takes over from an earlier one at once.
    node text NOT NULL,
    schema_version int NOT NULL,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    beat_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    detail_json text NOT NULL DEFAULT '{}'
  ) WITH (fillfactor = 50);

  -- The number of commits of each connection for writes, by which outcomes and changes of other processes are noticed.
  CREATE TABLE connections (
    process text NOT NULL,
    slot int NOT NULL,
    generation int NOT NULL,
    writes bigint NOT NULL,
    PRIMARY KEY (process, slot)
  ) WITH (fillfactor = 50);

  -- A lease is held while its row exists. Epochs are never used twice.
  CREATE SEQUENCE epochs;
  CREATE TABLE leases (
    name text PRIMARY KEY,
    epoch bigint NOT NULL UNIQUE,
    process text NOT NULL,
    -- The shards that it covers; null for a lease without shards.
    shard_from int,
    shard_to int
  ) WITH (fillfactor = 50);

  CREATE TABLE sessions (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id ${T} NOT NULL UNIQUE,
    -- The id without its agent.
    key ${T} NOT NULL,
    name text,
    created_at float8 NOT NULL,
    last_active_at float8 NOT NULL,
    message_count int NOT NULL
  ) WITH (fillfactor = 50);
  CREATE INDEX sessions_by_key ON sessions (key);
  CREATE INDEX sessions_by_activity ON sessions USING brin (last_active_at) WITH (autosummarize = on);

  -- One row for all messages of a turn; 'up_to' is the session's message count with them.
  CREATE TABLE messages (
    session bigint NOT NULL,
    up_to int NOT NULL,
    at float8 NOT NULL,
    messages_json text NOT NULL,
    PRIMARY KEY (session, up_to)
  );
  CREATE INDEX messages_by_time ON messages USING brin (at) WITH (autosummarize = on);

  CREATE TABLE session_summaries (
    session bigint PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
    up_to int NOT NULL,
    up_to_at float8 NOT NULL,
    text text NOT NULL,
    model text NOT NULL,
    at float8 NOT NULL,
    untrusted boolean NOT NULL
  );

  CREATE TABLE turns (
    id ${T} PRIMARY KEY,
    shard smallint NOT NULL,
    agent text NOT NULL,
    session_id text,
    owner text,
    -- Where its messages are, if they are kept: 'input' and 'response' are null where they stand there.
    session bigint,
    up_to int,
    -- The message it answers, which resumes it and has its input.
    inbox bigint,
    source text NOT NULL,
    status text NOT NULL,
    input text,
    response text,
    model text,
    finish_reason text,
    error_json text,
    input_tokens float8 NOT NULL DEFAULT 0,
    output_tokens float8 NOT NULL DEFAULT 0,
    cost_usd float8 NOT NULL DEFAULT 0,
    attempts float8 NOT NULL DEFAULT 0,
    starts int NOT NULL DEFAULT 0,
    created_at float8 NOT NULL,
    ended_at float8,
    context_json text,
    checkpoint_json text,
    abort_requested boolean NOT NULL DEFAULT false,
    -- The SHA-256 of the idempotency key that it was asked for with.
    idempotency text
  ) WITH (fillfactor = 80);
  CREATE INDEX turns_unfinished ON turns (shard, created_at) WHERE ended_at IS NULL AND inbox IS NULL;
  CREATE INDEX turns_with_cost ON turns (ended_at, cost_usd) WHERE cost_usd <> 0;
  CREATE INDEX turns_with_key ON turns (idempotency) WHERE idempotency IS NOT NULL;
  CREATE UNIQUE INDEX turns_holding_key ON turns (idempotency) WHERE idempotency IS NOT NULL AND ended_at IS NULL;
  CREATE INDEX turns_to_abort ON turns (shard) WHERE abort_requested AND ended_at IS NULL;
  -- By a hash of the session, because its id is long.
  CREATE INDEX turns_of_sessions ON turns (hashtextextended(session_id, 0)) WHERE session_id IS NOT NULL;
  CREATE INDEX turns_by_end ON turns USING brin (ended_at) WITH (autosummarize = on);

  -- What turns cost that are no longer kept, by the quarter of an hour they ended in, counted from 1970.
  CREATE TABLE costs (
    quarter bigint NOT NULL,
    agent text NOT NULL,
    usd float8 NOT NULL,
    PRIMARY KEY (quarter, agent)
  );

  -- It has one body: the request in 'inbox_bodies', which the channel parses again, or the message in 'message_json'. An edited message
  -- stands in 'message_json' and replaces the one of the request. Short columns that change come first. Half of each page is free, so that
  -- the new version of a row that changes fits on its page: only the difference is then written to the log of the server.
  CREATE TABLE inbox (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    received_at float8 NOT NULL,
    replayed_at float8,
    next_at float8,
    ended_at float8,
    -- The row that has the body of the request, where several messages came in one.
    batch bigint,
    attempts int NOT NULL DEFAULT 0,
    shard smallint NOT NULL,
    -- The first half of a SHA-256 of what makes a message run once: channel, account and its id there.
    key bytea NOT NULL UNIQUE,
    state text NOT NULL DEFAULT 'pending',
    -- 'dead' or 'limited' after such an end, for lists: the index does not cover the states that change often.
    marked text,
    turn_id text,
    error text,
    -- Null: the worker classifies the message.
    kind text,
    channel text NOT NULL,
    account text NOT NULL,
    sender text NOT NULL,
    session text NOT NULL,
    message_id text NOT NULL,
    verdict text NOT NULL,
    trace text,
    draft text,
    -- The approval that the message answers.
    approval_run_id text,
    approval_step_id text,
    message_json text
  ) WITH (fillfactor = 50);
  -- The bodies of requests, which never change.
  CREATE TABLE inbox_bodies (
    number bigint PRIMARY KEY,
    raw bytea NOT NULL
  );
  CREATE INDEX inbox_open ON inbox (shard, number) WHERE ended_at IS NULL;
  CREATE INDEX inbox_marked ON inbox (marked, number) WHERE marked IS NOT NULL;
  CREATE INDEX inbox_by_batch ON inbox (batch) WHERE batch IS NOT NULL;
  CREATE INDEX inbox_by_end ON inbox USING brin (ended_at) WITH (autosummarize = on);

  -- Nonces of requests, by the first half of a SHA-256.
  CREATE TABLE nonces (
    key bytea PRIMARY KEY,
    until float8 NOT NULL
  );
  CREATE INDEX nonces_by_end ON nonces (until);

  CREATE TABLE outbox (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    shard smallint NOT NULL,
    channel text NOT NULL,
    account text NOT NULL,
    to_json text NOT NULL,
    text text NOT NULL,
    part int NOT NULL,
    parts int NOT NULL,
    client_id text NOT NULL,
    inbox bigint,
    turn_id text,
    state text NOT NULL DEFAULT 'queued',
    attempts int NOT NULL DEFAULT 0,
    created_at float8 NOT NULL,
    replayed_at float8,
    next_at float8,
    ended_at float8,
    -- 'dead' or 'ambiguous' after such an end, as in the inbox.
    marked text,
    provider_id text,
    error text,
    extras_json text,
    -- True for an edit of an earlier message, which may be repeated.
    is_edit boolean NOT NULL DEFAULT false,
    -- Shared by the parts of one reply; null for a reply of one part.
    reply text,
    trace text
  ) WITH (fillfactor = 40);
  CREATE INDEX outbox_by_reply ON outbox (reply) WHERE reply IS NOT NULL;
  CREATE INDEX outbox_open ON outbox (shard, number) WHERE ended_at IS NULL;
  CREATE INDEX outbox_marked ON outbox (marked, number) WHERE marked IS NOT NULL;
  CREATE INDEX outbox_by_message ON outbox (inbox) WHERE inbox IS NOT NULL;
  CREATE INDEX outbox_by_end ON outbox USING brin (ended_at) WITH (autosummarize = on);

  CREATE TABLE approvals (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    shard smallint NOT NULL,
    run_id text NOT NULL,
    step_id text NOT NULL,
    gate text NOT NULL,
    workflow text NOT NULL,
    title text NOT NULL,
    message text NOT NULL,
    call_hash text,
    owner text,
    person text,
    approve_json text NOT NULL,
    reject_json text NOT NULL,
    created_at float8 NOT NULL,
    expires_at float8,
    token text NOT NULL UNIQUE,
    state text NOT NULL DEFAULT 'pending',
    decided_by text,
    feedback text,
    decided_at float8,
    settled_at float8,
    UNIQUE (run_id, step_id)
  );
  CREATE INDEX approvals_by_state ON approvals (state);
  CREATE INDEX approvals_by_owner ON approvals (owner) WHERE owner IS NOT NULL;
  CREATE INDEX approvals_unsettled ON approvals (shard, number) WHERE settled_at IS NULL;
  CREATE INDEX approvals_by_settlement ON approvals (settled_at) WHERE settled_at IS NOT NULL;
  CREATE INDEX approvals_pending ON approvals (run_id) WHERE state = 'pending';

  CREATE TABLE approval_prompts (
    outbox bigint PRIMARY KEY,
    approval bigint NOT NULL REFERENCES approvals ON DELETE CASCADE,
    channel text NOT NULL,
    account text NOT NULL,
    to_json text NOT NULL,
    provider_id text
  );
  CREATE INDEX approval_prompts_by_approval ON approval_prompts (approval);

  CREATE TABLE sop_runs (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL UNIQUE,
    shard smallint NOT NULL,
    sop text NOT NULL,
    status text NOT NULL,
    ended_at float8,
    run_json text NOT NULL
  );
  CREATE INDEX sop_runs_by_sop ON sop_runs (sop);
  CREATE INDEX sop_runs_active ON sop_runs (shard, number) WHERE ended_at IS NULL;
  CREATE INDEX sop_runs_by_end ON sop_runs (ended_at, number) WHERE ended_at IS NOT NULL;

  CREATE TABLE sop_ends (
    sop text PRIMARY KEY,
    ended_at float8 NOT NULL
  );

  CREATE TABLE sop_events (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- The first half of a SHA-256; null where only the idempotency key tells a repeat.
    key bytea UNIQUE,
    at float8 NOT NULL,
    dispatch_json text NOT NULL,
    idempotency text
  );
  CREATE INDEX sop_events_by_time ON sop_events (at);
  CREATE INDEX sop_events_with_key ON sop_events (at) WHERE idempotency IS NOT NULL;

  CREATE TABLE sop_audit (
    number bigint PRIMARY KEY,
    kind text NOT NULL,
    at float8 NOT NULL,
    sop text NOT NULL,
    run text,
    step float8,
    by text NOT NULL,
    reason text,
    detail_json text NOT NULL,
    previous text NOT NULL,
    hash text NOT NULL
  );
  CREATE INDEX sop_audit_by_run ON sop_audit (run, number) WHERE run IS NOT NULL;
  CREATE INDEX sop_audit_by_sop ON sop_audit (sop, number);
  -- The last record: a record that is cut off the end leaves a gap. Whoever appends locks this row.
  CREATE TABLE sop_audit_head (
    number bigint NOT NULL,
    hash text NOT NULL
  );
  INSERT INTO sop_audit_head VALUES (0, repeat('0', 64));
  CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION 'the audit log is append-only';
  END $$;
  CREATE TRIGGER sop_audit_keeps_records BEFORE UPDATE OR DELETE OR TRUNCATE ON sop_audit EXECUTE FUNCTION refuse_change();

  CREATE TABLE devices (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL UNIQUE,
    name text NOT NULL,
    role text NOT NULL,
    token_hash text NOT NULL UNIQUE,
    created_at float8 NOT NULL,
    last_seen_at float8,
    last_address text,
    expires_at float8,
    issued_by text
  );
  CREATE TABLE revoked_devices (
    id text PRIMARY KEY,
    revoked_at float8 NOT NULL
  );
  CREATE TABLE pairing_codes (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hash text NOT NULL UNIQUE,
    role text NOT NULL,
    expires_at float8 NOT NULL
  );

  CREATE TABLE memories (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner ${T} NOT NULL,
    key ${T} NOT NULL,
    content text NOT NULL,
    category text NOT NULL,
    updated_at float8 NOT NULL,
    words tsvector NOT NULL,
    UNIQUE (owner, key)
  );
  CREATE INDEX memories_by_words ON memories USING gin (words);
  CREATE INDEX memories_by_time ON memories (updated_at);

  -- Keys are UTF-16, most significant byte first.
  CREATE TABLE key_values (
    owner ${T} NOT NULL,
    key bytea NOT NULL,
    value_json text NOT NULL,
    PRIMARY KEY (owner, key)
  );
  CREATE INDEX key_values_by_key ON key_values (key);

  -- The admitted turns of clients and pools with a limit. 'id' is the turn, or 'inbox:<number>' for a message.
  CREATE TABLE admissions (
    id text NOT NULL,
    client ${T} NOT NULL,
    shard smallint NOT NULL,
    at float8 NOT NULL,
    -- True until the turn or the message ends.
    open boolean NOT NULL,
    -- The position among the admissions of the client.
    place bigint NOT NULL,
    PRIMARY KEY (id, client)
  );
  CREATE INDEX admissions_by_place ON admissions (client, place, at);
  CREATE INDEX admissions_open ON admissions (client) WHERE open;
  CREATE INDEX admissions_ended ON admissions (at) WHERE NOT open;

  CREATE TABLE spending (
    client ${T} NOT NULL,
    day bigint NOT NULL,
    usd float8 NOT NULL,
    PRIMARY KEY (client, day)
  );
  CREATE TABLE held_back (
    client ${T} NOT NULL,
    cause text NOT NULL,
    since float8 NOT NULL,
    until float8 NOT NULL,
    news float8 NOT NULL,
    PRIMARY KEY (client, cause)
  );
  CREATE TABLE loops (
    session text PRIMARY KEY,
    number bigint NOT NULL,
    quick int NOT NULL,
    answered_at float8 NOT NULL
  );

  -- The end of a turn or a message ends its admission, and withdraws the questions about the calls of the turn, in the same commit.
  CREATE FUNCTION end_of_turn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    UPDATE approvals SET state = 'cancelled', decided_by = 'system', decided_at = NEW.ended_at
      WHERE run_id = NEW.id AND gate = 'tool' AND state = 'pending';
    UPDATE admissions SET open = false WHERE id = NEW.id AND open;
    RETURN NULL;
  END $$;
  CREATE FUNCTION end_of_message() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    UPDATE admissions SET open = false WHERE id = 'inbox:' || NEW.number AND open;
    RETURN NULL;
  END $$;
  CREATE TRIGGER turn_ends AFTER UPDATE ON turns FOR EACH ROW
    WHEN (OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL) EXECUTE FUNCTION end_of_turn();
  CREATE TRIGGER turn_is_stored AFTER INSERT ON turns FOR EACH ROW
    WHEN (NEW.ended_at IS NOT NULL) EXECUTE FUNCTION end_of_turn();
  CREATE TRIGGER message_ends AFTER UPDATE ON inbox FOR EACH ROW
    WHEN (OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL) EXECUTE FUNCTION end_of_message();
  `,
  },
  {
    sql: `
  -- How a process takes part in a cluster. 'cluster' is null for a daemon that shares the database with no other.
  ALTER TABLE processes
    ADD COLUMN cluster text,
    -- The machine and its data directory: two places with one name of a node are two daemons.
    ADD COLUMN place text,
    ADD COLUMN version text NOT NULL DEFAULT '',
    ADD COLUMN url text,
    ADD COLUMN roles text[] NOT NULL DEFAULT '{}',
    ADD COLUMN config_version bigint,
    ADD COLUMN key_id text,
    ADD COLUMN is_leaving boolean NOT NULL DEFAULT false;
  -- The nodes that an operator has asked to own nothing.
  CREATE TABLE drained_nodes (
    node text PRIMARY KEY,
    since timestamptz NOT NULL DEFAULT clock_timestamp()
  );
  `,
  },
  {
    sql: `
  -- The process that runs a turn, or will: nobody else resumes the turn while that process lives. Null: the owner of its shard.
  ALTER TABLE turns ADD COLUMN process text;
  CREATE INDEX turns_of_processes ON turns (process) WHERE ended_at IS NULL AND process IS NOT NULL;
  -- The turn that a session is leased for, the client that may abort it, and whether somebody has asked to.
  ALTER TABLE leases ADD COLUMN turn text, ADD COLUMN owner text, ADD COLUMN abort_requested boolean NOT NULL DEFAULT false;
  -- The process that has begun the turn of an admission. It ends with that process unless the turn is stored.
  ALTER TABLE admissions ADD COLUMN process text;
  `,
  },
  {
    sql: `
  -- Rate limits of a cluster: the moments of calls within the last minute, and the calls at each. Forgotten when the server crashes.
  CREATE UNLOGGED TABLE calls (
    rate_limit text NOT NULL,
    key ${T} NOT NULL,
    at float8[] NOT NULL,
    counts int[] NOT NULL,
    until float8 NOT NULL,
    PRIMARY KEY (rate_limit, key)
  ) WITH (fillfactor = 50);

  -- Counts a call and earlier ones, whose ages it gets, in steps of a span of time. Returns for how long calls are refused; 0 counts this one.
  CREATE FUNCTION take_call(name text, of_key text, calls_max int, step_ms float8, given_ms float8, ages float8[], OUT waits_ms float8)
  LANGUAGE plpgsql AS $$ DECLARE
    now_ms float8 := coalesce(given_ms, extract(epoch FROM clock_timestamp())::float8 * 1000);
    known calls%ROWTYPE;
    total bigint;
  BEGIN
    INSERT INTO calls AS row VALUES (name, of_key, '{}', '{}', now_ms + 60000)
      ON CONFLICT (rate_limit, key) DO UPDATE SET until = greatest(row.until, excluded.until) RETURNING * INTO known;
    SELECT coalesce(array_agg(moment ORDER BY moment), '{}'), coalesce(array_agg(count ORDER BY moment), '{}'), coalesce(sum(count), 0)
      INTO known.at, known.counts, total
      FROM (
        SELECT moment, sum(count)::int AS count FROM (
          SELECT * FROM unnest(known.at, known.counts) AS counted (moment, count)
          UNION ALL SELECT ceil((now_ms - age) / step_ms) * step_ms, 1 FROM unnest(ages) AS age) AS every_one
        WHERE moment > now_ms - 60000 GROUP BY moment) AS merged;
    waits_ms := 0;
    IF total < calls_max THEN
      known.at := known.at || ceil(now_ms / step_ms) * step_ms;
      known.counts := known.counts || 1;
    ELSE
      SELECT min(moment) + 60000 - now_ms INTO waits_ms FROM (
        SELECT moment, sum(count) OVER (ORDER BY moment DESC) - count AS later FROM unnest(known.at, known.counts) AS counted (moment, count)
      ) AS sums WHERE later < calls_max;
    END IF;
    UPDATE calls SET at = known.at, counts = known.counts WHERE rate_limit = name AND key = of_key;
  END $$;

  CREATE TABLE lockouts (
    lockout text NOT NULL,
    key ${T} NOT NULL,
    failures float8[] NOT NULL,
    locked_until float8 NOT NULL,
    until float8 NOT NULL,
    PRIMARY KEY (lockout, key)
  ) WITH (fillfactor = 50);

  -- Counts a failure. Returns true when it was one too many; counting then begins anew.
  CREATE FUNCTION count_failure(
    name text, of_key text, failures_max int, window_ms float8, lock_ms float8, given_ms float8, OUT is_too_many boolean)
  LANGUAGE plpgsql AS $$ DECLARE
    now_ms float8 := coalesce(given_ms, extract(epoch FROM clock_timestamp())::float8 * 1000);
    known lockouts%ROWTYPE;
  BEGIN
    INSERT INTO lockouts AS row VALUES (name, of_key, '{}', 0, now_ms + window_ms)
      ON CONFLICT (lockout, key) DO UPDATE SET until = greatest(row.until, excluded.until) RETURNING * INTO known;
    known.failures := ARRAY(SELECT at FROM unnest(known.failures) AS at WHERE at > now_ms - window_ms ORDER BY at) || now_ms;
    is_too_many := cardinality(known.failures) >= failures_max;
    IF is_too_many THEN
      known.failures := '{}';
      known.locked_until := now_ms + lock_ms;
      known.until := greatest(known.until, known.locked_until);
    END IF;
    UPDATE lockouts SET failures = known.failures, locked_until = known.locked_until, until = known.until
      WHERE lockout = name AND key = of_key;
  END $$;

  -- Keys that are valid once, by the SHA-256 of each. Forgotten when the server crashes.
  CREATE UNLOGGED TABLE one_time_keys (
    number bigint GENERATED ALWAYS AS IDENTITY,
    purpose text NOT NULL,
    owner ${T} NOT NULL,
    hash text NOT NULL,
    value_json text NOT NULL,
    expires_at float8 NOT NULL,
    PRIMARY KEY (purpose, owner, hash)
  );
  CREATE INDEX one_time_keys_by_number ON one_time_keys (purpose, number);
  CREATE INDEX one_time_keys_by_end ON one_time_keys (expires_at);

  -- The events of all nodes. Both tables are empty after a crash of the server. 'base' is the number from which on the numbers are counted.
  CREATE UNLOGGED TABLE event_head (
    only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
    base bigint NOT NULL,
    seq bigint NOT NULL
  ) WITH (fillfactor = 10);
  CREATE UNLOGGED TABLE events (
    seq bigint PRIMARY KEY,
    process text NOT NULL,
    body text NOT NULL
  );

  -- Changes whenever the token of a device is refused from then on.
  CREATE TABLE revocations (
    only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
    version bigint NOT NULL
  ) WITH (fillfactor = 10);
  INSERT INTO revocations (version) VALUES (1);
  CREATE FUNCTION note_revocation() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    UPDATE revocations SET version = version + 1;
    RETURN NULL;
  END $$;
  CREATE TRIGGER device_is_removed AFTER DELETE ON devices FOR EACH STATEMENT EXECUTE FUNCTION note_revocation();
  CREATE TRIGGER token_is_replaced AFTER UPDATE OF token_hash ON devices FOR EACH STATEMENT EXECUTE FUNCTION note_revocation();

  -- The configuration that all nodes share.
  CREATE TABLE config (
    version bigint PRIMARY KEY,
    text text NOT NULL,
    hash text NOT NULL,
    by_whom text NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
  );
  `,
  },
  {
    sql: `
  -- Counts turns in the order given, or tells which limit each would exceed. The limits of turn n are those from firsts[n] to firsts[n + 1] - 1.
  -- Turns that count for one client take place one after the other, in all processes, until the commit.
  CREATE FUNCTION take_admissions(
    ids text[], shards int[], times float8[], of_processes text[], firsts int[],
    keys text[], hourly_max float8[], open_max float8[], usd_max float8[])
  RETURNS TABLE (request int, exceeded text, of_key text, limit_value float8, free_at float8)
  LANGUAGE plpgsql AS $$ DECLARE
    now_ms float8;
    today bigint;
    last_place bigint;
    last_at float8;
    nth_at float8;
  BEGIN
    PERFORM pg_advisory_xact_lock(7354, lock) FROM (SELECT DISTINCT hashtext(key) AS lock FROM unnest(keys) AS key ORDER BY 1) AS locks;
    FOR turn IN 1 .. cardinality(ids) LOOP
      CONTINUE WHEN EXISTS (SELECT 1 FROM admissions WHERE id = ids[turn]);
      now_ms := times[turn];
      today := floor(now_ms / 86400000);
      exceeded := NULL;
      FOR nth IN firsts[turn] .. firsts[turn + 1] - 1 LOOP
        IF usd_max[nth] > 0 AND EXISTS (SELECT 1 FROM spending WHERE client = keys[nth] AND day = today AND usd >= usd_max[nth]) THEN
          SELECT 'usd_per_day', keys[nth], usd_max[nth], (today + 1) * 86400000 INTO exceeded, of_key, limit_value, free_at;
          EXIT;
        END IF;
      END LOOP;
      FOR nth IN firsts[turn] .. firsts[turn + 1] - 1 LOOP
        SELECT place, at INTO last_place, last_at FROM admissions WHERE client = keys[nth] ORDER BY place DESC LIMIT 1;
        -- After the clock was set back, later rows count as of now: they neither vanish nor count for longer than an hour. Also without a
        -- limit of turns, so that the times of a client never decrease from place to place.
        IF last_at > now_ms THEN
          UPDATE admissions SET at = now_ms WHERE client = keys[nth] AND at > now_ms;
        END IF;
        -- Places have no gaps, except where old rows were pruned: the turn this many places back decides, without a count of the hour.
        nth_at := NULL;
        IF hourly_max[nth] > 0 THEN
          SELECT at INTO nth_at FROM admissions
            WHERE client = keys[nth] AND place = coalesce(last_place, 0) - hourly_max[nth]::bigint + 1 AND at > now_ms - 3600000 LIMIT 1;
        END IF;
        -- A turn waits for another one to end only if no other limit is in its way.
        IF nth_at IS NOT NULL THEN
          IF coalesce(exceeded, 'turns_in_flight') = 'turns_in_flight' THEN
            SELECT 'turns_per_hour', keys[nth], hourly_max[nth], nth_at + 3600000 INTO exceeded, of_key, limit_value, free_at;
          END IF;
        ELSIF open_max[nth] > 0 AND exceeded IS NULL
          AND (SELECT count(*) FROM admissions WHERE client = keys[nth] AND open) >= open_max[nth] THEN
          SELECT 'turns_in_flight', keys[nth], open_max[nth], now_ms INTO exceeded, of_key, limit_value, free_at;
        END IF;
      END LOOP;
      IF exceeded IS NOT NULL THEN
        request := turn - 1;
        RETURN NEXT;
        CONTINUE;
      END IF;
      FOR nth IN firsts[turn] .. firsts[turn + 1] - 1 LOOP
        INSERT INTO admissions (id, client, shard, at, open, place, process)
          SELECT ids[turn], keys[nth], shards[turn], now_ms, true,
            1 + coalesce((SELECT place FROM admissions WHERE client = keys[nth] ORDER BY place DESC LIMIT 1), 0), of_processes[turn];
        -- The time of the news stays, so that a client that is admitted now and then gets no further notice.
        UPDATE held_back SET until = now_ms WHERE client = keys[nth] AND until > now_ms AND cause <> 'loop';
      END LOOP;
    END LOOP;
  END $$;
  `,
  },
  {
    sql: `
  -- Records that a client is held back. Returns whether that is news: the last news is older than a span of time, or from the future,
  -- because the clock was set back. Locks the row of the client and the cause until the commit.
  CREATE FUNCTION hold_back(of_client text, of_cause text, since_ms float8, until_ms float8, quiet_ms float8, OUT is_news boolean)
  LANGUAGE plpgsql AS $$ DECLARE
    known held_back%ROWTYPE;
  BEGIN
    INSERT INTO held_back AS held (client, cause, since, until, news) VALUES (of_client, of_cause, since_ms, until_ms, '-infinity')
      ON CONFLICT (client, cause) DO UPDATE SET cause = held.cause RETURNING * INTO known;
    is_news := known.news <= since_ms - quiet_ms OR known.news > since_ms;
    UPDATE held_back SET
      news = CASE WHEN is_news THEN since_ms ELSE known.news END,
      since = CASE WHEN known.until > since_ms AND known.since <= since_ms THEN known.since ELSE since_ms END,
      until = until_ms
      WHERE client = of_client AND cause = of_cause;
  END $$;
  `,
  },
  {
    sql: `
  -- The order in which turns were stored, by which those of a session begin. Null for a turn that an earlier release stored.
  CREATE SEQUENCE turn_places;
  ALTER TABLE turns ADD COLUMN place bigint;
  `,
  },
  {
    sql: `
  -- Who may decide an approval: the decider that the tool declares, the standing of whoever asked, the sources of untrusted text, and the
  -- standing of the person who decided. Null for those of earlier releases.
  ALTER TABLE approvals
    ADD COLUMN decider text, ADD COLUMN standing text, ADD COLUMN sources_json text, ADD COLUMN decided_standing text;
  `,
  },
  {
    sql: `
  -- The HMACs of rows that nodes trust; see signed-tables.ts. Null: written by an earlier release.
  ALTER TABLE config ADD COLUMN hmac text;
  ALTER TABLE devices ADD COLUMN hmac text;
  ALTER TABLE pairing_codes ADD COLUMN hmac text;
  ALTER TABLE one_time_keys ADD COLUMN hmac text;
  ALTER TABLE key_values ADD COLUMN hmac text;
  -- A change by an earlier release leaves the HMAC of the values before, which would count as forged.
  CREATE FUNCTION forget_hmac() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    NEW.hmac := NULL;
    RETURN NEW;
  END $$;
  CREATE TRIGGER device_changes_unsigned BEFORE UPDATE OF token_hash, expires_at ON devices FOR EACH ROW
    WHEN (NEW.hmac = OLD.hmac AND (NEW.token_hash, NEW.expires_at) IS DISTINCT FROM (OLD.token_hash, OLD.expires_at))
    EXECUTE FUNCTION forget_hmac();
  CREATE TRIGGER value_changes_unsigned BEFORE UPDATE OF value_json ON key_values FOR EACH ROW
    WHEN (NEW.hmac = OLD.hmac AND NEW.value_json <> OLD.value_json) EXECUTE FUNCTION forget_hmac();
  CREATE TRIGGER key_changes_unsigned BEFORE UPDATE OF value_json, expires_at ON one_time_keys FOR EACH ROW
    WHEN (NEW.hmac = OLD.hmac AND (NEW.value_json, NEW.expires_at) IS DISTINCT FROM (OLD.value_json, OLD.expires_at))
    EXECUTE FUNCTION forget_hmac();
  `,
  },
  {
    sql: `
  -- The JSON of the person who started a run. Null without one, and for the runs of earlier releases.
  ALTER TABLE sop_runs ADD COLUMN starter text;
  `,
  },
  {
    sql: `
  -- The order of the priority of a run (0: low), and, only while a limit holds it back, the time of its event.
  ALTER TABLE sop_runs ADD COLUMN rank smallint NOT NULL DEFAULT 1, ADD COLUMN held_at float8;
  CREATE INDEX sop_runs_waiting ON sop_runs (rank DESC, number) WHERE held_at IS NOT NULL;
  CREATE INDEX sop_runs_by_status ON sop_runs (sop, status) WHERE ended_at IS NULL;
  `,
  },
  {
    sql: `
  -- Whether a reply was sent again after an answer that does not exclude that it had arrived.
  ALTER TABLE outbox ADD COLUMN repeated boolean NOT NULL DEFAULT false;
  -- Platforms report later by their id of a message that they could not deliver it.
  CREATE INDEX outbox_by_provider_id ON outbox (provider_id) WHERE provider_id IS NOT NULL;
  `,
  },
  {
    sql: `
  -- What turns that are no longer kept cost, took and used, by the quarter of an hour they ended in, counted from 1970. An empty model: none
  -- is known. Processes of the release before read the table costs, which has the sums of agents alone.
  CREATE TABLE dropped_costs (
    quarter bigint NOT NULL,
    agent text NOT NULL,
    model text NOT NULL,
    usd float8 NOT NULL,
    turns bigint NOT NULL,
    input_tokens float8 NOT NULL,
    output_tokens float8 NOT NULL,
    PRIMARY KEY (quarter, agent, model)
  );
  INSERT INTO dropped_costs SELECT quarter, agent, '', usd, 0, 0, 0 FROM costs;
  CREATE FUNCTION keep_dropped_costs() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO dropped_costs AS kept
    SELECT floor(ended_at / 900000)::bigint, agent, coalesce(model, ''), sum(cost_usd), count(*), sum(input_tokens), sum(output_tokens)
    FROM dropped WHERE ended_at IS NOT NULL GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT (quarter, agent, model) DO UPDATE SET usd = kept.usd + excluded.usd, turns = kept.turns + excluded.turns,
      input_tokens = kept.input_tokens + excluded.input_tokens, output_tokens = kept.output_tokens + excluded.output_tokens;
    RETURN NULL;
  END $$;
  CREATE TRIGGER costs_of_dropped_turns AFTER DELETE ON turns REFERENCING OLD TABLE AS dropped
    FOR EACH STATEMENT EXECUTE FUNCTION keep_dropped_costs();
  `,
  },
  {
    sql: `
  -- The model calls and tool calls of an ended turn, as a JSON array; null for none.
  ALTER TABLE turns ADD COLUMN steps_json text;
  `,
  },
  {
    sql: `
  -- Whether text of others may have led to a memory, which nobody knows of those of earlier releases.
  ALTER TABLE memories ADD COLUMN untrusted boolean NOT NULL DEFAULT true;
  `,
    fill: indexMemories,
  },
  {
    sql: `
  -- The number of the message that got the words of this one.
  ALTER TABLE inbox ADD COLUMN joined bigint;
  CREATE INDEX inbox_by_joined ON inbox (joined) WHERE joined IS NOT NULL;
  `,
  },
  {
    sql: `
  -- The newest memories of one owner.
  CREATE INDEX memories_by_owner_and_time ON memories (owner, updated_at);
  DROP INDEX memories_by_time;
  `,
  },
  {
    sql: `
  -- How far the clock of the process is ahead of that of the database, in milliseconds; null while it is not known.
  ALTER TABLE processes ADD COLUMN clock_offset_ms float8;
  `,
  },
  {
    sql: `
  -- What the process sees of the folders that all nodes must have in common, and the programs that it runs; null before its first look.
  ALTER TABLE processes ADD COLUMN report_json text;
  `,
  },
]

/** Fills the index of memories with the words, and the parts of words, of this release. */
async function indexMemories(all: All): Promise<void> {
  for (let after = 0; ; ) {
    const rows = await all<{ number: number; key: string; content: string }>(
      'SELECT number, key, content FROM memories WHERE number > $1 ORDER BY number LIMIT 500',
      after,
    )
    for (const { number, key, content } of rows)
      await all("UPDATE memories SET words = to_tsvector('simple', $2) WHERE number = $1", number, indexedWords(key, content))
    const last = rows.at(-1)
    if (!last) return
    after = last.number
  }
}

/** The schema version of the first release that signs rows. */
export const SIGNED_SINCE = 9
