/** How soon the nodes of a cluster follow a change that one of them took: the revocation of a device, and a new configuration. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '@sluice/testkit/random'
import type { ClusterNode } from './cluster-node.ts'

/** How soon one node followed one change. */
export interface Followed {
  readonly change: 'revocation' | 'configuration'
  readonly node: string
  /** Counted from the answer to the request that made the change. Null: the node had not followed when the watch ended. */
  readonly tookMs: number | null
}

export interface Changing {
  readonly nodes: readonly [ClusterNode, ...ClusterNode[]]
  readonly random: Random
  /** An operator's token. */
  readonly token: string
}

/** The whole numbers from `min` to `max`; at least two. */
export interface NumberRange {
  readonly min: number
  readonly max: number
}

const WATCHED_MS = 5_000
const REQUEST_MS_MAX = 4_000
const POLL_MS = 20
const ATTEMPTS_MAX = 20

interface Asked {
  readonly status: number
  // The shapes of several answers, which their readers name.
  readonly body: Readonly<Record<string, unknown>>
}

async function ask(node: ClusterNode, method: string, path: string, token: string, body?: object): Promise<Asked | undefined> {
  try {
    const response = await fetch(`${node.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      signal: AbortSignal.timeout(REQUEST_MS_MAX),
      ...(body && { body: JSON.stringify(body) }),
    })
    return { status: response.status, body: (await response.json()) as Asked['body'] }
  } catch {
    return undefined
  }
}

/** Asks a node until one answers 200. After an attempt without an answer, 404 says that this attempt has deleted what was to be deleted. */
async function askAny({ nodes, random, token }: Changing, method: string, path: string, body?: object): Promise<Asked['body'] | undefined> {
  let mayBeDeleted = false
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++, await sleep(250)) {
    const answer = await ask(random.pick(nodes), method, path, token, body)
    if (answer?.status === 200 || (mayBeDeleted && answer?.status === 404)) return answer.body
    mayBeDeleted ||= answer === undefined && method === 'DELETE'
  }
  return undefined
}

interface Stream {
  /** The time at which it ended, as `performance.now`. */
  readonly ended: Promise<number>
  close(): void
}

async function openStream(node: ClusterNode, token: string): Promise<Stream> {
  const leaving = new AbortController()
  const response = await fetch(`${node.url}/api/events`, { headers: { authorization: `Bearer ${token}` }, signal: leaving.signal })
  if (response.status !== 200) throw new Error(`${node.name} answered ${response.status}`)
  const ended = (async () => {
    for await (const _ of response.body ?? []);
  })().catch(() => undefined)
  return { ended: ended.then(() => performance.now()), close: () => leaving.abort() }
}

/** Revokes a device that has a stream on every node. Resolves to undefined if it could not be added or revoked. */
export async function revokeDevice(changing: Changing): Promise<Followed[] | undefined> {
  const { nodes } = changing
  const device = await askAny(changing, 'POST', '/api/devices', { name: 'to be revoked', role: 'client' })
  if (!device) return undefined
  const token = String(device.token)
  const streams = await Promise.all(nodes.map(async (node) => ({ node, stream: await openStream(node, token).catch(() => undefined) })))
  if (!(await askAny(changing, 'DELETE', `/api/devices/${device.device_id}`))) return undefined
  const startedMs = performance.now()
  const followed = streams.map(async ({ node, stream }): Promise<Followed[]> => {
    if (!stream) return []
    const endedMs = await Promise.race([stream.ended, sleep(WATCHED_MS, null)])
    stream.close()
    const later = await ask(node, 'GET', '/api/status', token)
    const isEnded = endedMs !== null && later?.status !== 200
    return [{ change: 'revocation', node: node.name, tookMs: isEnded ? Math.max(0, endedMs - startedMs) : null }]
  })
  return (await Promise.all(followed)).flat()
}

interface NodeShown {
  readonly node: string
  readonly state: string
  readonly config_version: number | null
}

const shownBy = ({ nodes = [] }: Asked['body']): readonly NodeShown[] =>
  (nodes as readonly NodeShown[]).filter(({ state }) => state === 'up')

/**
 * Changes one number of the shared configuration, and watches the versions that the cluster shows. Resolves to undefined if none took it.
 * The number follows from the version: the same one again would be no change, so that no version would follow it.
 */
export async function changeConfig(changing: Changing, key: string, { min, max }: NumberRange): Promise<Followed[] | undefined> {
  const before = await askAny(changing, 'GET', '/api/cluster')
  if (!before) return undefined
  const version = Math.max(...shownBy(before).map(({ config_version }) => config_version ?? 0))
  const value = min + (version % (max - min + 1))
  for (let attempt = 0; ; attempt++) {
    const shown = await askAny(changing, 'GET', '/api/config')
    if (!shown || attempt === ATTEMPTS_MAX) return undefined
    const { nodes, random, token } = changing
    const saved = await ask(random.pick(nodes), 'PUT', '/api/config', token, { changes: [{ key, value }], version: shown.version })
    if (saved?.status === 200) break
    await sleep(250)
  }
  const startedMs = performance.now()
  const waiting = new Set(shownBy(before).map(({ node }) => node))
  const followed: Followed[] = []
  while (waiting.size > 0 && performance.now() - startedMs < WATCHED_MS) {
    const now = await askAny(changing, 'GET', '/api/cluster')
    for (const { node, config_version } of shownBy(now ?? {})) {
      if ((config_version ?? 0) <= version || !waiting.delete(node)) continue
      followed.push({ change: 'configuration', node, tookMs: performance.now() - startedMs })
    }
    await sleep(POLL_MS)
  }
  return [...followed, ...[...waiting].map((node): Followed => ({ change: 'configuration', node, tookMs: null }))]
}
