/** The nodes that share the database: which of them live, and how many shards each should own. */
import {
  type ClusterMember,
  type ClusterNode,
  type ClusterRole,
  type ClusterStore,
  type LeaseName,
  type NodeState,
  parseNodeReport,
  SHARDS,
  type SharedState,
} from '@sluice/sdk'
import { sql } from '../connection/connection.ts'
import type { Database } from '../connection/database.ts'
import { messagesBeside } from '../tables/inbox.ts'
import type { Leases } from './leases.ts'
import { TTL_MS } from './membership.ts'
import { FREED } from './notice-line.ts'

const LIVES = `beat_at > clock_timestamp() - ${TTL_MS} * interval '1 millisecond'`
/** Shards that an earlier process of this node holds are free for it: it has ended, or is about to. */
const SITUATION = `
  SELECT
    (SELECT count(DISTINCT node)::int FROM processes
      WHERE cluster IS NOT NULL AND 'worker' = ANY (roles) AND NOT is_leaving AND ${LIVES}
        AND node NOT IN (SELECT node FROM drained_nodes)) AS workers,
    EXISTS (SELECT 1 FROM drained_nodes WHERE node = $2) AS "isDrained",
    (SELECT coalesce(sum(shard_to - shard_from + 1), 0)::int FROM leases JOIN processes ON processes.id = leases.process
      WHERE shard_from IS NOT NULL AND ${LIVES} AND node <> $2 AND process <> $1) AS elsewhere`
const NODES = `
  SELECT DISTINCT ON (node) node, cluster AS name, roles, url, version, schema_version AS "schemaVersion", config_version AS "configVersion",
    key_id AS "keyId", is_leaving AS "isLeaving", ${LIVES} AS lives, EXISTS (SELECT 1 FROM drained_nodes WHERE drained_nodes.node = processes.node) AS "isDrained",
    extract(epoch FROM clock_timestamp() - beat_at)::float8 * 1000 AS "silentMs", extract(epoch FROM started_at)::float8 * 1000 AS "startedAtMs",
    clock_offset_ms AS "clockOffsetMs", report_json AS "reportJson",
    (SELECT coalesce(sum(shard_to - shard_from + 1), 0)::int FROM leases WHERE process = processes.id AND shard_from IS NOT NULL AND ${LIVES}) AS shards,
    ARRAY(SELECT name FROM leases WHERE process = processes.id AND shard_from IS NULL AND turn IS NULL AND ${LIVES} ORDER BY name) AS leases
  FROM processes WHERE cluster IS NOT NULL AND beat_at > clock_timestamp() - interval '1 day' ORDER BY node, beat_at DESC`
const DRAIN = `
  INSERT INTO drained_nodes (node) SELECT DISTINCT node FROM processes WHERE node = $1 AND cluster IS NOT NULL
  ON CONFLICT (node) DO UPDATE SET since = drained_nodes.since RETURNING 1`
const UNDRAIN = 'DELETE FROM drained_nodes WHERE node = $1 RETURNING 1'
const KNOWN = 'SELECT 1 FROM processes WHERE node = $1 AND cluster IS NOT NULL LIMIT 1'
const REPORT = 'UPDATE processes SET report_json = $2 WHERE id = $1'
const LEAVE = 'UPDATE processes SET is_leaving = true WHERE id = $1'

interface Situation {
  readonly workers: number
  readonly isDrained: boolean
  readonly elsewhere: number
}

interface NodeColumns extends Omit<ClusterNode, 'state' | 'leases' | 'roles' | 'report'> {
  readonly reportJson: string | null
  readonly roles: readonly ClusterRole[]
  readonly leases: readonly LeaseName[]
  readonly isLeaving: boolean
  readonly isDrained: boolean
  readonly lives: boolean
}

export interface ClusterOptions {
  readonly member: ClusterMember
  readonly process: string
  readonly db: Database
  readonly leases: Leases
}

export function createCluster({
  member,
  process,
  db,
  leases,
}: ClusterOptions): Omit<ClusterStore, 'turns' | 'notices' | keyof SharedState> {
  const isWorker = member.roles.includes('worker')
  let isLeaving = false
  let seenWorkers = 0
  return {
    ...member,
    seen: () => ({ workers: seenWorkers, beatAgeMs: leases.beatAgeMs, clockOffsetMs: db.serverClock.offsetMs }),
    async nodes() {
      return (await db.all<NodeColumns>(NODES)).map(({ isLeaving: leaves, isDrained, lives, reportJson, ...node }) => ({
        ...node,
        report: parseNodeReport(reportJson),
        state: stateOf({ isLeaving: leaves, isDrained, lives }),
      }))
    },
    async claimShards() {
      await leases.start()
      const { workers, isDrained, elsewhere } = (await db.get<Situation>(SITUATION, process, member.node)) ?? NOTHING
      seenWorkers = workers
      if (!isWorker || isDrained || isLeaving) return { share: 0, taken: [], isDrained }
      const share = Math.ceil(SHARDS / Math.max(1, workers))
      const held = leases.shardsHeld
      const missing = Math.min(share - held, SHARDS - elsewhere - held)
      return { share, taken: missing > 0 ? await leases.takeShards(missing) : [], isDrained }
    },
    changed: (signal) => leases.changed(signal),
    messagesBeside: (numbers) => messagesBeside(db, numbers),
    async report(report) {
      await db.writer.write(sql(REPORT, process, JSON.stringify(report)))
    },
    async drain(node, isDrained) {
      const [text, otherwise] = isDrained ? [DRAIN, undefined] : [UNDRAIN, KNOWN]
      const changed = await db.writer.write(sql(text, node))
      await leases.notify(FREED)
      return changed.length > 0 || (otherwise !== undefined && (await db.get(otherwise, node)) !== undefined)
    },
    rebalance: () => leases.notify(FREED),
    async leave() {
      isLeaving = true
      await db.writer.write(sql(LEAVE, process))
      await leases.notify(FREED)
    },
  }
}

const NOTHING: Situation = { workers: 0, isDrained: false, elsewhere: SHARDS }

function stateOf({ isLeaving, isDrained, lives }: Pick<NodeColumns, 'isLeaving' | 'isDrained' | 'lives'>): NodeState {
  if (!lives) return 'dead'
  if (isLeaving) return 'leaving'
  return isDrained ? 'drained' : 'up'
}
