/** What happens to the nodes of a cluster and to its database. Each fault begins, lasts, and ends with everything whole again. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { ServerProcess, Standby } from '@sluice/store-postgres/testing/postgres-server'
import type { Random } from '@sluice/testkit/random'
import pg from 'pg'
import type { Seen } from '../chaos/history.ts'
import { environment } from '../daemons/bundle.ts'
import type { ClusterNode } from './cluster-node.ts'
import { changeConfig, type Followed, revokeDevice } from './follow-changes.ts'

/** How long a process counts as alive after its last beat: the leases of the store have this constant. */
export const TTL_MS = 6_000
const OFFSET_MS = 3_600_000
const CLOCK = join(import.meta.dirname, 'clock-offset.mjs')
const POLL_MS = 5
const RUNNING_POLL_MS = 25
const RUNNING_MS_MAX = 3_000
const IN_TRANSACTION_MS_MAX = 3_000
/** Slow enough that transactions of several round trips are open most of the time. */
const SLOW_DATABASE_MS = 20
const run = promisify(execFile)

export interface FaultStage {
  readonly nodes: readonly [ClusterNode, ...ClusterNode[]]
  readonly random: Random
  /** The server that takes writes, and what may take over from it. */
  readonly database: { server: ServerProcess; standby: Standby | undefined }
  /** Records when a node loses the world, and when it has it again. */
  see(event: Extract<Seen, { type: 'world' }>): void
  /** An operator's token. */
  readonly token: string
  /** The programs of the previous release and of this one. Absent: all nodes run one release. */
  readonly releases?: readonly [string, string]
  /** Records how soon nodes followed a change. */
  follow(seen: readonly Followed[]): void
  /** Counts an occurrence other than the fault itself. */
  count(what: string): void
}

export type FaultName = keyof typeof FAULTS

const oneOf = ({ nodes, random }: FaultStage): ClusterNode => random.pick(nodes)
/** The number of messages that each node works on. A message belongs to the process with the lease of its shard. */
const RUNNING = `
  SELECT processes.node, count(*)::int AS count FROM inbox
  JOIN leases ON inbox.shard BETWEEN leases.shard_from AND leases.shard_to JOIN processes ON processes.id = leases.process
  WHERE inbox.ended_at IS NULL AND inbox.state = 'running' GROUP BY 1 ORDER BY 2 DESC LIMIT 1`

/** Resolves to the node with the most running turns, as soon as one has some; to a random one if none does within a few seconds. */
async function busyNode(stage: FaultStage): Promise<ClusterNode> {
  const client = new pg.Client({ connectionString: stage.database.server.url, options: '-c search_path=sluice' })
  client.on('error', () => undefined)
  try {
    await client.connect()
    for (const endMs = performance.now() + RUNNING_MS_MAX; performance.now() < endMs; await sleep(RUNNING_POLL_MS)) {
      const [busiest] = (await client.query(RUNNING)).rows
      const node = busiest && stage.nodes.find(({ name }) => name === busiest.node)
      if (!node) continue
      stage.count('stopped with running turns')
      return node
    }
  } catch {
    // Without the database, any node will do.
  } finally {
    await client.end().catch(() => undefined)
  }
  return oneOf(stage)
}

const ttls = (random: Random, min: number, max: number): number => random.within(min * TTL_MS, max * TTL_MS)

async function restart(stage: FaultStage, node: ClusterNode): Promise<void> {
  if ((await node.start()) === undefined) {
    // Without the database, as right after its own fault, a daemon may end at its start.
    stage.count('start failed')
    await sleep(500)
    await restart(stage, node)
  }
}

/** Stops the node for one to three times the life of a lease. */
async function suspend({ random, see }: FaultStage, node: ClusterNode): Promise<void> {
  node.suspend()
  // Its requests to the model meet their time limits.
  see({ type: 'world', node: node.name, isCut: true })
  await sleep(ttls(random, 1, 3))
  node.resume()
  see({ type: 'world', node: node.name, isCut: false })
}

async function cutFromWorld(stage: FaultStage, how: 'reset' | 'silent'): Promise<void> {
  const node = oneOf(stage)
  stage.see({ type: 'world', node: node.name, isCut: true })
  await node.world.cut(how)
  await sleep(ttls(stage.random, 0.2, 1))
  await node.world.restore()
  stage.see({ type: 'world', node: node.name, isCut: false })
}

/** Resolves to true once a connection of the node has a transaction open that waits for its next statement. */
async function isInTransaction(url: string, node: ClusterNode): Promise<boolean> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  await client.connect()
  try {
    for (const endMs = performance.now() + IN_TRANSACTION_MS_MAX; performance.now() < endMs; await sleep(POLL_MS)) {
      const open = await client.query("SELECT client_port FROM pg_stat_activity WHERE state = 'idle in transaction'")
      if (open.rows.some(({ client_port }) => node.database.localPorts.includes(client_port))) return true
    }
    return false
  } finally {
    await client.end()
  }
}

/** Returns the versions of the nodes that are up, as the command of this node shows them. */
async function releasesShownBy({ program, dataDir }: ClusterNode): Promise<Set<string>> {
  const args = [program, 'cluster', 'status', '--json', '--data-dir', dataDir]
  const { stdout } = await run(process.execPath, args, { env: environment() })
  const { nodes } = JSON.parse(stdout) as { readonly nodes: readonly { readonly state: string; readonly version: string }[] }
  return new Set(nodes.flatMap(({ state, version }) => (state === 'up' ? version : [])))
}

export const FAULTS = {
  async kill(stage: FaultStage) {
    const node = oneOf(stage)
    await node.end('SIGKILL')
    await sleep(stage.random.within(0, 2 * TTL_MS))
    await restart(stage, node)
  },
  async suspend(stage: FaultStage) {
    await suspend(stage, await busyNode(stage))
  },
  async 'suspend in a transaction'(stage: FaultStage) {
    const node = oneOf(stage)
    node.database.delayMs = SLOW_DATABASE_MS
    const isOpen = await isInTransaction(stage.database.server.url, node).catch(() => false)
    if (isOpen) node.suspend()
    node.database.delayMs = 0
    if (!isOpen) return
    stage.count('stopped inside a transaction')
    await suspend(stage, node)
  },
  async 'cut from the database'(stage: FaultStage) {
    const node = oneOf(stage)
    await node.database.cut('reset')
    await sleep(ttls(stage.random, 0.5, 2))
    await node.database.restore()
  },
  async 'half-open to the database'(stage: FaultStage) {
    const node = oneOf(stage)
    await node.database.cut('silent')
    await sleep(ttls(stage.random, 0.5, 2))
    await node.database.restore()
  },
  async 'cut from the world'(stage: FaultStage) {
    await cutFromWorld(stage, 'reset')
  },
  async 'half-open to the world'(stage: FaultStage) {
    await cutFromWorld(stage, 'silent')
  },
  async 'slow database'(stage: FaultStage) {
    const node = oneOf(stage)
    node.database.delayMs = stage.random.within(20, 200)
    await sleep(stage.random.within(1_000, TTL_MS))
    node.database.delayMs = 0
  },
  async 'kill PostgreSQL'({ database, random, count }: FaultStage) {
    for (let times = random.within(1, 4); times > 0; times--) {
      await database.server.kill()
      count('PostgreSQL killed')
      await sleep(random.within(0, 1_000))
      await database.server.start()
      await sleep(random.within(100, 2_000))
    }
  },
  async 'promote the standby'({ database, count }: FaultStage) {
    const { standby } = database
    if (!standby) return
    await database.server.kill()
    await standby.promote()
    database.server = standby
    database.standby = undefined
    count('standby promoted')
  },
  async 'rolling restart'(stage: FaultStage) {
    for (const node of stage.nodes) {
      const code = await node.end('SIGTERM')
      if (code !== 0) stage.count(`SIGTERM ended with ${code}`)
      await restart(stage, node)
    }
  },
  async 'wrong clock'(stage: FaultStage) {
    const node = oneOf(stage)
    const before = node.env
    const offset = stage.random.chance(0.5) ? OFFSET_MS : -OFFSET_MS
    node.env = { ...before, NODE_OPTIONS: `--import=${CLOCK}`, CLOCK_OFFSET_MS: String(offset) }
    await node.end(stage.random.chance(0.5) ? 'SIGKILL' : 'SIGTERM')
    await restart(stage, node)
    await sleep(TTL_MS)
    node.env = before
    await node.end(stage.random.chance(0.5) ? 'SIGKILL' : 'SIGTERM')
    await restart(stage, node)
  },
  /** Replaces the release of one node after the other: by this one at first, by the previous one the next time. */
  async 'change the release'(stage: FaultStage) {
    const { nodes, releases, random, count } = stage
    if (!releases) return
    const next = nodes[0].program === releases[0] ? releases[1] : releases[0]
    for (const node of nodes) {
      const by = random.chance(0.75) ? 'SIGTERM' : 'SIGKILL'
      const code = await node.end(by)
      if (by === 'SIGTERM' && code !== 0) count(`SIGTERM ended with ${code}`)
      node.program = next
      await restart(stage, node)
      count(`releases in the status: ${[...(await releasesShownBy(node))].toSorted().join(' and ')}`)
      await sleep(random.within(0, TTL_MS / 2))
    }
  },
  async 'change the configuration'(stage: FaultStage) {
    const seen = await changeConfig(stage, 'agent.max_concurrent_turns', { min: 6, max: 12 })
    if (seen) stage.follow(seen)
    else stage.count('no node took the configuration')
  },
  async 'revoke a device'(stage: FaultStage) {
    const seen = await revokeDevice(stage)
    if (seen) stage.follow(seen)
    else stage.count('no node revoked the device')
  },
} as const satisfies Readonly<Record<string, (stage: FaultStage) => Promise<void>>>
