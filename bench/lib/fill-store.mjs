// Fills the store of a stopped daemon with a million rows of every table that grows. The daemon has written at least one row of each
// table, which is copied with other keys, so that every row is one that the daemon writes.
import { DatabaseSync } from 'node:sqlite'

/** The keys of a copied row, as SQL over its number `i` and the times of the run; columns that are not named keep their values. */
const TEXT = (prefix) => `'${prefix}-' || printf('%07d', i)`
const TABLES = {
  sessions: {
    number: 'NULL',
    // One sender in 16 conversations, and a thousand sessions of other channels.
    id: `CASE WHEN i % 1000 = 0 THEN 'channel:roomchat/bot/room-' || i || '/person-' || (i % 7) ELSE ${sessionLike()} END`,
    last_active_at: 'sample.last_active_at - i * 1000',
  },
  messages: { session: 'i + 1', up_to: '2' },
  turns: { id: TEXT('turn'), ended_at: 'sample.ended_at - i * 1000', created_at: 'sample.created_at - i * 1000' },
  inbox: { number: 'NULL', key: 'randomblob(16)', message_id: TEXT('wamid'), channel: channelLike() },
  outbox: { number: 'NULL', client_id: TEXT('reply'), provider_id: TEXT('wamid'), channel: channelLike() },
  memories: { number: 'NULL', owner: `'channel:chatapp/200000000000002/1555' || printf('%07d', i % 5000)`, key: TEXT('key') },
  sop_runs: {
    number: 'NULL',
    id: TEXT('run'),
    ended_at: 'sample.ended_at - i',
    // A run in a thousand failed.
    run_json: `json_set(sample.run_json, '$.id', ${TEXT('run')}, '$.status', CASE WHEN i % 1000 = 0 THEN 'failed' ELSE 'completed' END)`,
  },
  // The log refuses numbers that it has to choose itself.
  sop_audit: { number: 'sample.number + 100 + i', run: TEXT('run') },
  approvals: {
    number: 'NULL',
    run_id: TEXT('run'),
    token: TEXT('token'),
    owner: `CASE WHEN i % 2 THEN 'device-' || (i % 100) END`,
    state: `CASE WHEN i % 100 = 0 THEN 'rejected' ELSE 'approved' END`,
  },
}

/** Nearly all rows are of one channel, and some of another. */
function channelLike() {
  return `CASE WHEN i % 1000 = 0 THEN 'roomchat' ELSE sample.channel END`
}

function sessionLike() {
  return `substr(sample.id, 1, instr(sample.id, '1555') - 1) || (i % 16) || '/1555' || printf('%07d', i / 16)`
}

/** Returns the columns of a table that hold values, and not the generated ones. */
const columnsOf = (db, table) =>
  db
    .prepare('SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0')
    .all(table)
    .map(({ name }) => name)

/** An approval as the daemon opens and settles it, since the daemon opens none without a person. It is new, so that the daemon keeps it. */
const NOW_MS = 'unixepoch() * 1000'
const SAMPLE_APPROVAL = `
  INSERT INTO approvals (
    run_id, step_id, gate, workflow, title, message, approve_json, reject_json, created_at, expires_at, token, state, decided_by, decided_at, settled_at
  ) VALUES ('run-x', 'step-1', 'sop', 'machine-0', 'Restart', 'Restart the press?', '["yes"]', '["no"]', ${NOW_MS}, NULL, 't', 'approved', 'test', ${NOW_MS}, ${NOW_MS})`

/** The sums of the copied turns, which the daemon adds up as it stores each. */
const COSTS = `
  INSERT OR REPLACE INTO costs_by_model
  SELECT CAST(ended_at / 900000 AS INTEGER), agent, coalesce(model, ''), total(cost_usd), count(*), total(input_tokens), total(output_tokens)
  FROM turns WHERE ended_at IS NOT NULL GROUP BY 1, 2, 3`

/** Adds `rows` copies to each table. Returns the seconds that it took. */
export function fillStore(file, rows) {
  const start = performance.now()
  const db = new DatabaseSync(file)
  db.exec('PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -524288')
  db.exec(SAMPLE_APPROVAL)
  for (const [table, set] of Object.entries(TABLES)) {
    const columns = columnsOf(db, table)
    const values = columns.map((column) => set[column] ?? `sample.${column}`)
    const { changes } = db
      .prepare(
        `WITH RECURSIVE numbers (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM numbers WHERE i < ${rows})
         INSERT OR IGNORE INTO ${table} (${columns}) SELECT ${values} FROM numbers, (SELECT * FROM ${table} LIMIT 1) AS sample`,
      )
      .run()
    if (changes < rows / 2) throw new Error(`only ${changes} rows were added to ${table}`)
  }
  db.exec(COSTS)
  db.exec('PRAGMA journal_mode = WAL')
  db.close()
  return (performance.now() - start) / 1000
}
