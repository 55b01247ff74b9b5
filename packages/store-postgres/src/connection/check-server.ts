/** Checks of the server that `doctor` shows: standbys, old snapshots, the clock, and the time of a commit. */
import { CLOCK_OFFSET_MS_MAX, type Clock, type ServerCheck } from '@sluice/sdk'
import type { Database } from './database.ts'

const PROBES = 5
const COMMIT_MS_MAX = 100
const SNAPSHOT_SECS_MAX = 300
const LAG_BYTES_MAX = 64 * 1024 * 1024
const RETAINED_BYTES_MAX = 1024 * 1024 * 1024
const MEGABYTE = 1024 * 1024

const FACTS = `
  SELECT current_setting('server_version') AS version, current_setting('synchronous_standby_names') AS names`
// Without the role pg_monitor, the server hides what other users do; their rows then count as neither.
const STANDBYS = `
  SELECT application_name AS name, sync_state AS state,
    coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn), 0)::float8 AS "lagBytes"
  FROM pg_stat_replication WHERE sync_state IS NOT NULL`
const SLOTS = `
  SELECT slot_name::text AS name, pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::float8 AS bytes
  FROM pg_replication_slots WHERE NOT active AND restart_lsn IS NOT NULL ORDER BY 2 DESC LIMIT 1`
const OLDEST = `
  SELECT extract(epoch FROM clock_timestamp() - xact_start)::float8 AS secs, pid, application_name AS name FROM pg_stat_activity
  WHERE backend_xmin IS NOT NULL AND xact_start IS NOT NULL AND pid <> pg_backend_pid() AND datname = current_database()
  UNION ALL
  SELECT extract(epoch FROM clock_timestamp() - prepared)::float8, 0, 'prepared transaction ' || gid FROM pg_prepared_xacts
  ORDER BY secs DESC LIMIT 1`
const NOW = 'SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS ms'
/** A commit that changes no data: it writes a message to the log of the server. */
const COMMIT = "SELECT pg_logical_emit_message(true, 'sluice', 'doctor')"

interface Facts {
  readonly version: string
  readonly names: string
}

interface Standby {
  readonly name: string
  readonly state: string
  readonly lagBytes: number
}

/** `oldPrimaries` are servers that accept writes in addition to the right one. `snapshotSecsMax` is for tests. */
export async function checkServer(
  db: Database,
  {
    snapshotSecsMax = SNAPSHOT_SECS_MAX,
    oldPrimaries = [],
  }: { readonly snapshotSecsMax?: number; readonly oldPrimaries?: readonly string[] } = {},
): Promise<readonly ServerCheck[]> {
  const facts = await db.get<Facts>(FACTS)
  const standbys = await db.all<Standby>(STANDBYS)
  return [
    ...(facts ? [version(facts), durability(facts, standbys)] : []),
    await lag(db, standbys),
    await snapshots(db, snapshotSecsMax),
    await clockOf(db),
    await commitTime(db),
    ...(oldPrimaries.length > 0 ? [oldPrimary(oldPrimaries)] : []),
  ]
}

const oldPrimary = (names: readonly string[]): ServerCheck => ({
  check: 'database primary',
  status: 'fail',
  detail: `${names.join(' and ')} accepts writes, but is an old primary`,
  fix: 'stop it, or make it a standby: docs/cluster.md#fencing',
})

const ok = (check: string, detail: string): ServerCheck => ({ check, status: 'ok', detail, fix: null })
const warn = (check: string, detail: string, fix: string): ServerCheck => ({ check, status: 'warn', detail, fix })

const version = ({ version: name }: Facts): ServerCheck => ok('database version', `PostgreSQL ${name}`)

function durability({ names }: Facts, standbys: readonly Standby[]): ServerCheck {
  const check = 'database standby'
  const isSync = (state: string): boolean => state === 'sync' || state === 'quorum'
  const some = standbys.filter(({ state }) => isSync(state))
  if (some.length > 0) return ok(check, `synchronous: ${some.map(({ name }) => name).join(', ')}`)
  if (names !== '') return warn(check, `commits wait for a synchronous standby (${names}), and none is connected`, 'connect the standby')
  if (standbys.length === 0) return ok(check, 'no standby is visible: the loss of the server loses everything since the last backup')
  return warn(
    check,
    `asynchronous only (${standbys.map(({ name }) => name).join(', ')}): a failover loses the newest acknowledged messages`,
    "set synchronous_standby_names on the server, such as 'ANY 1 (*)'",
  )
}

async function lag(db: Database, standbys: readonly Standby[]): Promise<ServerCheck> {
  const check = 'database replication'
  const slow = standbys.filter(({ lagBytes }) => lagBytes > LAG_BYTES_MAX)
  if (slow.length > 0)
    return warn(
      check,
      slow.map(({ name, lagBytes }) => `${name} is ${(lagBytes / MEGABYTE).toFixed(0)} MB behind`).join('; '),
      'look at the load and the network of the standby',
    )
  const slot = await db.get<{ name: string; bytes: number }>(SLOTS)
  if (slot && slot.bytes > RETAINED_BYTES_MAX)
    return warn(
      check,
      `nobody reads the replication slot ${slot.name}, which keeps ${(slot.bytes / MEGABYTE).toFixed(0)} MB of log`,
      'connect its reader again, or drop the slot',
    )
  if (standbys.length === 0) return ok(check, 'none')
  return ok(check, `${standbys.length} ${standbys.length === 1 ? 'standby' : 'standbys'}, at most ${LAG_BYTES_MAX / MEGABYTE} MB behind`)
}

/** Dead rows stay while an old transaction may still see them, so that tables whose rows change often grow and become slow. */
async function snapshots(db: Database, secsMax: number): Promise<ServerCheck> {
  const check = 'database snapshots'
  const oldest = await db.get<{ secs: number; pid: number; name: string }>(OLDEST)
  if (!oldest || oldest.secs < secsMax) return ok(check, `no transaction is older than ${secsMax} s`)
  return warn(
    check,
    `a transaction of '${oldest.name}' (process ${oldest.pid}) is ${Math.floor(oldest.secs)} s old: the server cannot clean up dead rows`,
    'end it, and set idle_in_transaction_session_timeout for its user',
  )
}

async function clockOf({ clock, reader, ...db }: Database): Promise<ServerCheck> {
  const differences = await repeated(clock, async () => (await db.get<{ ms: number }>(NOW))?.ms ?? Number.NaN)
  const [best] = differences.toSorted((a, b) => a.tookMs - b.tookMs)
  const ms = best ? best.result - (best.startedAtMs + best.tookMs / 2) : 0
  const shown = `${Math.abs(ms).toFixed(0)} ms ${ms < 0 ? 'behind' : 'ahead of'} the clock of this machine`
  if (Math.abs(ms) <= CLOCK_OFFSET_MS_MAX) return ok('database clock', shown)
  return warn('database clock', shown, 'let both machines take the time from the same servers')
}

async function commitTime({ clock, ...db }: Database): Promise<ServerCheck> {
  const times = (await repeated(clock, () => db.all(COMMIT))).map(({ tookMs }) => tookMs).toSorted((a, b) => a - b)
  const median = times[Math.floor(times.length / 2)] ?? 0
  const shown = `a commit takes ${median.toFixed(1)} ms`
  if (median <= COMMIT_MS_MAX) return ok('database commit', shown)
  return warn('database commit', shown, 'look at the disk of the server and at the network to it and to its synchronous standby')
}

async function repeated<T>(clock: Clock, probe: () => Promise<T>) {
  const results: { readonly result: T; readonly startedAtMs: number; readonly tookMs: number }[] = []
  for (let count = 0; count < PROBES; count++) {
    const [startedAtMs, startedMs] = [clock.nowMs(), performance.now()]
    const result = await probe()
    results.push({ result, startedAtMs, tookMs: performance.now() - startedMs })
  }
  return results
}
