// The floor for the store on PostgreSQL: the SQL that a developer would write by hand for one message's life, with the same durability and
// the same check of a lease in each commit, and without what a product needs besides. One copy of the body, one pipelined connection.
import { createHash } from 'node:crypto'
import pg from 'pg'
import { CHANNEL } from './life-messages.mjs'

const BATCH_MAX = 512
const SHARDS = 256

const SCHEMA = `
CREATE SCHEMA floor;
SET search_path = floor;
CREATE TABLE leases (epoch bigint PRIMARY KEY, name text NOT NULL);
INSERT INTO leases VALUES (1, 'shards/0-255');
CREATE TABLE inbox (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key bytea NOT NULL UNIQUE, shard smallint NOT NULL,
  state smallint NOT NULL DEFAULT 0, attempts smallint NOT NULL DEFAULT 0, received_at float8 NOT NULL, ended_at float8, turn uuid,
  channel text NOT NULL, account text NOT NULL, message_id text NOT NULL, sender text NOT NULL, session text NOT NULL, verdict text NOT NULL,
  raw bytea) WITH (fillfactor = 80);
CREATE INDEX inbox_open ON inbox (shard, number) WHERE ended_at IS NULL;
CREATE TABLE sessions (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text NOT NULL UNIQUE, created_at float8 NOT NULL,
  last_active_at float8 NOT NULL, message_count int NOT NULL) WITH (fillfactor = 70);
CREATE TABLE messages (session bigint NOT NULL, up_to int NOT NULL, at float8 NOT NULL, messages_json text NOT NULL, PRIMARY KEY (session, up_to));
CREATE TABLE turns (id uuid PRIMARY KEY, inbox bigint NOT NULL, session bigint, up_to int, status smallint NOT NULL, model text,
  input_tokens int, output_tokens int, created_at float8 NOT NULL, ended_at float8) WITH (fillfactor = 80);
CREATE TABLE outbox (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, shard smallint NOT NULL, channel text NOT NULL, account text NOT NULL,
  to_json text NOT NULL, text text NOT NULL, client_id text NOT NULL, inbox bigint NOT NULL, turn uuid NOT NULL, state smallint NOT NULL DEFAULT 0,
  attempts smallint NOT NULL DEFAULT 0, created_at float8 NOT NULL, ended_at float8, provider_id text) WITH (fillfactor = 80);
CREATE INDEX outbox_open ON outbox (shard, number) WHERE ended_at IS NULL;
CREATE INDEX outbox_by_message ON outbox (inbox);
`
const FENCE = 'SELECT 1 / (count(*) = 1)::int FROM (SELECT 1 FROM leases WHERE epoch = 1 FOR SHARE) AS held'
const KEEP = `INSERT INTO inbox (key, shard, received_at, channel, account, message_id, sender, session, verdict, raw)
  SELECT * FROM unnest($1::bytea[], $2::smallint[], $3::float8[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::bytea[])
  ON CONFLICT DO NOTHING RETURNING number, key`
const START = `WITH s AS (UPDATE inbox SET state = 1, attempts = attempts + 1, turn = coalesce(inbox.turn, v.turn)
    FROM unnest($1::bigint[], $2::uuid[]) AS v (n, turn) WHERE number = v.n AND ended_at IS NULL AND attempts < 5 RETURNING number, inbox.turn, received_at)
  INSERT INTO turns (id, inbox, status, created_at) SELECT turn, number, 0, received_at FROM s
  ON CONFLICT (id) DO UPDATE SET status = 0 WHERE turns.ended_at IS NULL RETURNING inbox`
const FINISH = `WITH v AS (SELECT * FROM unnest($1::bigint[], $2::uuid[], $3::text[], $4::float8[], $5::text[], $6::smallint[], $7::text[], $8::text[])
    AS v (number, turn, session, at, history, shard, to_json, text)),
  touched AS (INSERT INTO sessions (id, created_at, last_active_at, message_count) SELECT session, at, at, 2 FROM v ORDER BY session
    ON CONFLICT (id) DO UPDATE SET last_active_at = greatest(sessions.last_active_at, excluded.last_active_at), message_count = sessions.message_count + 2
    RETURNING id, number, message_count),
  appended AS (INSERT INTO messages SELECT touched.number, touched.message_count, at, history FROM v JOIN touched ON touched.id = v.session),
  turned AS (UPDATE turns SET status = 1, session = touched.number, up_to = touched.message_count, model = 'm', input_tokens = 10, output_tokens = 10,
    ended_at = v.at FROM v JOIN touched ON touched.id = v.session WHERE turns.id = v.turn AND turns.ended_at IS NULL),
  ended AS (UPDATE inbox SET state = 2, ended_at = v.at FROM v WHERE inbox.number = v.number AND inbox.ended_at IS NULL)
  INSERT INTO outbox (shard, channel, account, to_json, text, client_id, inbox, turn, created_at)
  SELECT shard, '${CHANNEL.channel}', '${CHANNEL.account}', to_json, text, turn::text, number, turn, at FROM v RETURNING number, inbox`
const SEND = `UPDATE outbox SET state = 1, attempts = attempts + 1 WHERE number = ANY ($1::bigint[]) AND ended_at IS NULL RETURNING number, to_json, text, client_id`
const SENT = `UPDATE outbox SET state = 2, provider_id = v.p, ended_at = v.at FROM unnest($1::bigint[], $2::text[], $3::float8[]) AS v (n, p, at)
  WHERE number = v.n AND ended_at IS NULL RETURNING number`

const keyOf = (id) => createHash('sha256').update(id).digest().subarray(0, 16)
const shardOf = (key) => key[0] % SHARDS

/** Groups units of one kind that are asked for while a commit is under way. Two of one session never share a statement. */
export async function openFloor(url) {
  const client = new pg.Client({ connectionString: url, pipeline: true })
  await client.connect()
  await client.query(SCHEMA)
  const names = new Map()
  const query = (text, values) => {
    if (!names.has(text)) names.set(text, `s${names.size}`)
    return client.query({ name: names.get(text), text, values })
  }
  let waiting = []
  let isRunning = false
  const run = async () => {
    while (waiting.length > 0) {
      const units = waiting.splice(0, BATCH_MAX)
      const sessions = new Set()
      const late = units.filter((unit) => unit.session && (sessions.has(unit.session) || !sessions.add(unit.session)))
      const now = units.filter((unit) => !late.includes(unit))
      waiting = [...late, ...waiting]
      const groups = Map.groupBy(now, ({ text }) => text)
      const asked = [query('BEGIN'), query(FENCE)]
      const answers = [...groups].map(([text, group]) => {
        const rows = group.map(({ values }) => values)
        return query(
          text,
          rows[0].map((_, at) => rows.map((values) => values[at])),
        )
      })
      asked.push(query('COMMIT'))
      await Promise.all(asked)
      const results = await Promise.all(answers)
      for (const [at, group] of [...groups.values()].entries()) {
        const found = new Map(results[at].rows.map((row) => [group[0].of(row), row]))
        for (const unit of group) unit.resolve(found.get(unit.id))
      }
    }
    isRunning = false
  }
  const add = (text, id, of, values, session) =>
    new Promise((resolve) => {
      waiting.push({ text, id, of, values, session, resolve })
      if (isRunning) return
      isRunning = true
      setImmediate(run)
    })
  const keep = async (one) => {
    const key = keyOf(one.id)
    const { channel, account, verdict } = CHANNEL
    const values = [key, shardOf(key), Date.now(), channel, account, one.id, one.sender, one.session, verdict, one.raw]
    return (await add(KEEP, key.toString('hex'), (row) => row.key.toString('hex'), values)).number
  }
  return {
    keep,
    async live(one) {
      const number = await keep(one)
      await add(START, number, (row) => row.inbox, [number, one.turn])
      const history = JSON.stringify([
        { role: 'user', content: [{ type: 'text', text: one.message.text }] },
        { role: 'assistant', content: [{ type: 'text', text: one.answer }] },
      ])
      const values = [number, one.turn, one.session, Date.now(), history, 1, JSON.stringify(one.message.to), one.answer]
      const reply = (await add(FINISH, number, (row) => row.inbox, values, one.session)).number
      await add(SEND, reply, (row) => row.number, [reply])
      await add(SENT, reply, (row) => row.number, [reply, `wamid.${one.turn}`, Date.now()])
    },
    close: () => client.end(),
  }
}
