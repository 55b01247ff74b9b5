/**
 * The run of a cluster: messages arrive at three daemons that share a PostgreSQL, while faults take nodes, the network and the database
 * away. Then everything is whole again, all work ends, and the history is checked.
 */
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { startPostgres } from '@sluice/store-postgres/testing/postgres-server'
import { createRandom } from '@sluice/testkit/random'
import pg from 'pg'
import type { StoreView, Violation } from '../chaos/history.ts'
import { createPeople } from '../chaos/people.ts'
import { linesOn, readStore } from '../chaos/read-store.ts'
import { Traffic } from '../chaos/traffic.ts'
import { startWorld } from '../chaos/world.ts'
import { bundle, environment } from '../daemons/bundle.ts'
import { type ClusterHistory, checkCluster } from './check-cluster.ts'
import type { ClusterNode } from './cluster-node.ts'
import { FAULTS, type FaultName, type FaultStage } from './faults.ts'
import type { Followed } from './follow-changes.ts'
import { followNodes } from './follow-nodes.ts'
import { programOfNodes, startCluster } from './test-cluster.ts'

export interface ClusterOptions {
  /** The profile whose bundle runs; it has the store on PostgreSQL. Default: the program of a test cluster. */
  readonly profile?: string
  /** The program of the previous release, which all nodes run at first: see the fault 'change the release'. */
  readonly previous?: string
  readonly seed: number
  /** An empty directory for data directories, logs and the history. */
  readonly dir: string
  readonly signal: AbortSignal
  /** Messages arrive until the first of these is reached; the seconds count from the first message on. A list of faults is played to its end. */
  readonly messages: number
  readonly seconds: number
  /** Messages a second, as long as nodes take them. */
  readonly rate: number
  /** These faults one after the other. Default: random ones until the run ends. */
  readonly faults?: readonly FaultName[]
  readonly kinds?: readonly string[]
  onProgress?(messages: number, fault: string): void
}

export interface ClusterResult {
  readonly history: ClusterHistory
  readonly store: StoreView
  readonly violations: readonly Violation[]
  /** How often each fault was done, and what else was counted. */
  readonly counts: Readonly<Record<string, number>>
  readonly tookMs: number
}

/** Direct requests, messages whose signatures carry no time, so that a node with a wrong clock takes them too, and one kind that nodes fetch. */
const KINDS = ['post', 'chatapp', 'line', 'telegram']
const NODES = 3
const ATTEMPTS_MAX = 100
/** Long enough for a machine that other work shares. */
const MODEL_SECS = 20
const TURNS_AT_ONCE = 16
/** The conversations of each kind. The messages of one wait for each other. */
const SENDERS = 100
const SLOW = { share: 0.05, min: 300, max: 2_500 }
const QUICK_MS_MAX = 20
const CALM_MS = { min: 300, max: 3_000 }
const TICK_MS = 1_000
const TICKS_AT_ONCE = 10
const REQUEST_MS_MAX = 4_000
/** No more messages are written while so many wait, so that a slow machine ends its work soon after the last one. */
const UNASKED_MAX = 1_000
const SETTLE_MS_MAX = 300_000
const PEOPLE_POLL_MS = 250
const SUBSCRIBERS = 2
/** Of each rule. */
const VIOLATIONS_SHOWN = 5
const NAMES = Object.keys(FAULTS) as [FaultName, ...FaultName[]]
const OF_ONE_RELEASE = NAMES.filter((name) => name !== 'change the release') as typeof NAMES
/** What still waits or runs, as the database has it. */
const OPEN = `
  SELECT (SELECT count(*)::int FROM inbox WHERE ended_at IS NULL) AS messages, (SELECT count(*)::int FROM outbox WHERE ended_at IS NULL) AS replies,
    (SELECT count(*)::int FROM turns WHERE ended_at IS NULL) AS turns,
    (SELECT count(*)::int FROM unnest($1::text[]) AS id WHERE NOT EXISTS (SELECT 1 FROM inbox WHERE message_id = id)) AS unread`

/** Rejects if a node does not start, or `signal` aborts. */
export async function runCluster(options: ClusterOptions): Promise<ClusterResult> {
  const { profile, previous, seed, dir, signal, messages, seconds, rate, faults, kinds = KINDS, onProgress } = options
  const startedMs = performance.now()
  const random = createRandom(seed)
  // Some turns are long, so that each fault meets turns that run.
  const answer = () => sleep(random.chance(SLOW.share) ? random.within(SLOW.min, SLOW.max) : random.within(0, QUICK_MS_MAX))
  const limits = { attemptsMax: ATTEMPTS_MAX, modelSecs: MODEL_SECS, turnsAtOnce: TURNS_AT_ONCE }
  const world = await startWorld(random, { ...limits, answer, kinds: { only: kinds, senders: SENDERS } })
  const { recorder } = world
  const server = await startPostgres({ inMemory: true })
  const standby = await server.addStandby()
  const counts: Record<string, number> = {}
  const count = (what: string): void => {
    counts[what] = (counts[what] ?? 0) + 1
  }
  const current = profile === undefined ? programOfNodes() : bundle(profile)
  const program = previous ?? current
  const databaseUrl = `postgres://postgres@127.0.0.1:${server.port},127.0.0.1:${standby.port}/postgres`
  const cluster = await startCluster({
    nodes: NODES,
    toml: world.config
      .replace('[delivery]', '[delivery]\nretention_mb = 100000')
      .replace('require_pairing = false', 'require_pairing = true'),
    sharesConfig: true,
    server,
    databaseUrl,
    dir,
    program,
  })
  const { front, nodes } = cluster
  const token = await operatorToken(nodes[0])
  front.headers = { authorization: `Bearer ${token}` }
  const followed: Followed[] = []
  const stage: FaultStage = {
    nodes,
    random: createRandom(seed + 1),
    database: { server, standby },
    token,
    ...(previous !== undefined && { releases: [previous, current] }),
    count,
    see: recorder.see,
    follow: (seen) => void followed.push(...seen),
  }
  const events: string[][] = Array.from({ length: SUBSCRIBERS }, () => [])
  const over = new AbortController()
  const untilOver = AbortSignal.any([signal, over.signal])
  const following = events.map((ids, at) => followNodes(() => anyOf(cluster.live(), at), ids, untilOver, token))
  const history = (): ClusterHistory => ({ ...world.history(), events, followed })
  const traffic = new Traffic(world, { random, asksPeople: true, requestMsMax: REQUEST_MS_MAX, repeatsFailed: true })
  const people = createPeople({ world, traffic, random, pollMs: PEOPLE_POLL_MS })
  const asked = people.run(front.url, untilOver, { isPatient: false })
  try {
    await traffic.one(front.url, signal)
    const endMs = performance.now() + seconds * 1000
    world.faults.on = true
    const ending = new AbortController()
    const write = (): Promise<void> =>
      traffic.run(front.url, { count: Math.ceil((rate * TICK_MS) / 1000), ms: TICK_MS }, AbortSignal.any([signal, ending.signal]))
    const posting = (async () => {
      // A node that does not answer holds up a few requests, and not all that come after them.
      const running = new Set<Promise<void>>()
      while (!ending.signal.aborted && !signal.aborted && recorder.messages.size < messages) {
        const tick: Promise<void> = write().finally(() => running.delete(tick))
        running.add(tick)
        while (recorder.unasked > UNASKED_MAX && !ending.signal.aborted && !signal.aborted) await sleep(TICK_MS / 10)
        await (running.size < TICKS_AT_ONCE ? Promise.race([tick, sleep(TICK_MS)]) : Promise.race(running))
      }
      await Promise.all(running)
    })()
    const isOver = (): boolean => signal.aborted || recorder.messages.size >= messages || performance.now() > endMs
    for (const name of faults ?? endless(() => stage.random.pick(stage.releases ? NAMES : OF_ONE_RELEASE), isOver)) {
      if (faults ? signal.aborted : isOver()) break
      onProgress?.(recorder.messages.size, name)
      await FAULTS[name](stage)
      count(name)
      await sleep(random.within(CALM_MS.min, CALM_MS.max))
    }
    // The messages go on until the time is over.
    while (faults && !isOver()) await sleep(100)
    ending.abort()
    await posting
    world.faults.on = false
    onProgress?.(recorder.messages.size, 'settle')
    const left = await settle()
    if (left !== undefined) recorder.see({ type: 'unexpected', detail: `the cluster did not finish in ${SETTLE_MS_MAX / 1000} s: ${left}` })
    over.abort()
    await Promise.all([...following, asked])
    for (const node of nodes) {
      const code = await node.end('SIGTERM')
      if (code !== 0) recorder.see({ type: 'unexpected', detail: `SIGTERM ended ${node.name} with exit code ${code}` })
    }
    signal.throwIfAborted()
    const view = await readStore({ dataDir: nodes[0].dataDir, database: stage.database.server.url })
    const store = { ...view, lines: nodes.flatMap(linesOn) }
    writeFileSync(join(dir, 'store.json'), JSON.stringify(store))
    const [seen, tookMs] = [history(), performance.now() - startedMs]
    return { history: seen, store, violations: checkCluster(seen, store), counts, tookMs }
  } finally {
    over.abort()
    writeFileSync(join(dir, 'history.json'), JSON.stringify(history()))
    await cluster.close()
    await server.stop()
    await world.close()
  }

  /** Resolves to the unfinished work at the end, or to undefined once none is left. */
  async function settle(): Promise<string | undefined> {
    const client = new pg.Client({ connectionString: stage.database.server.url, options: '-c search_path=sluice' })
    await client.connect()
    try {
      let left = ''
      for (const endMs = performance.now() + SETTLE_MS_MAX; performance.now() < endMs && !signal.aborted; await sleep(250)) {
        if (traffic.waiting > 0) await traffic.retry(front.url, AbortSignal.any([signal, AbortSignal.timeout(SETTLE_MS_MAX)]))
        const unasked = [...recorder.messages.values()].filter(({ mark, isPulled }) => isPulled && !recorder.isAsked(mark))
        // An answer to a question never reaches the model.
        const answers = unasked.flatMap(({ id, answers }) => (answers ? [id] : []))
        const [open] = (await client.query(OPEN, [answers])).rows
        left = JSON.stringify({ ...open, unasked: unasked.length - answers.length, unacknowledged: traffic.waiting })
        if (open.messages + open.replies + open.turns + open.unread + unasked.length - answers.length + traffic.waiting === 0)
          return undefined
      }
      return left
    } finally {
      await client.end()
    }
  }
}

async function operatorToken({ program, dataDir }: ClusterNode): Promise<string> {
  const args = [program, 'pair', 'token', '--name', 'chaos', '--role', 'operator', '--data-dir', dataDir]
  return (await promisify(execFile)(process.execPath, args, { env: environment() })).stdout.trim()
}

/** The address of one of the nodes, another one each time. */
let turn = 0
function anyOf(nodes: readonly ClusterNode[], offset: number): string | undefined {
  turn += 1
  return nodes[(turn + offset) % Math.max(nodes.length, 1)]?.url
}

function* endless<Item>(next: () => Item, isOver: () => boolean): Generator<Item> {
  while (!isOver()) yield next()
}

/** The figures of a run. */
export function clusterSummary({
  history: { messages, seen, delivered, events, followed },
  store,
  counts,
  violations,
  tookMs,
}: ClusterResult) {
  const begun = seen.filter((event) => event.type === 'asked' && !event.afterTool)
  const states = (rows: readonly { readonly state: string }[]) =>
    Object.fromEntries([...Map.groupBy(rows, ({ state }) => state)].map(([state, same]) => [state, same.length]))
  const effects = seen.flatMap((event) => (event.type === 'effect' ? event.mark : []))
  return {
    seconds: Math.round(tookMs / 1000),
    messages: messages.length,
    acknowledged: new Set(seen.flatMap((event) => (event.type === 'acked' ? event.marks : []))).size,
    turnsBegun: begun.length,
    turnsBegunAgain: begun.length - new Set(begun.map((event) => (event.type === 'asked' ? event.mark : ''))).size,
    effects: effects.length,
    effectsRepeated: effects.length - new Set(effects).size,
    sends: seen.filter(({ type }) => type === 'sending').length,
    delivered: delivered.length,
    inbox: states(store.inbox),
    outbox: states(store.outbox),
    events: events.map((ids) => ids.length),
    faults: counts,
    /** The slowest node, in ms; null if one did not follow at all. */
    followed: Object.fromEntries(
      [...Map.groupBy(followed, ({ change }) => change)].map(([change, same]) => {
        const times = same.map(({ tookMs }) => tookMs)
        return [change, { nodes: same.length, msMax: times.includes(null) ? null : Math.round(Math.max(...times.map(Number))) }]
      }),
    ),
    violations: [...Map.groupBy(violations, ({ rule }) => rule)].map(([rule, same]) => ({
      rule,
      count: same.length,
      first: same.slice(0, VIOLATIONS_SHOWN).map(({ detail }) => detail),
    })),
  }
}
