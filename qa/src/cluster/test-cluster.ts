/**
 * A cluster for tests: a PostgreSQL of its own, daemons with links to the database and to the world that a test cuts, and an HTTP
 * server in front of them.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSecretBox } from '@sluice/store/secret-box'
import { startPostgres, type TestServer } from '@sluice/store-postgres/testing/postgres-server'
import { ROOT } from '../daemons/bundle.ts'
import { ClusterNode } from './cluster-node.ts'
import { type Front, startFront } from './front.ts'

export interface TestClusterOptions {
  /** Default: 2. One node without `isCluster` is a daemon without `[cluster]`. */
  readonly nodes?: number
  /** False: a single daemon, without a `[cluster]` section. Default: true. */
  readonly isCluster?: boolean
  /** The configuration of every node, but for `[store]` and `[cluster]`. Each `127.0.0.1:PORT` in it becomes a link to the world. */
  readonly toml?: string
  /** True: the nodes share the configuration in the database. Default: each has its own. */
  readonly sharesConfig?: boolean
  /** More of the `[cluster]` section of a node, as TOML. */
  readonly clusterKeys?: (node: string) => string
  /** The file that starts a daemon. Default: SLUICE_CLUSTER_PROGRAM, or the profile `full` as it is in the sources. */
  readonly program?: string
  readonly env?: (node: string) => Readonly<Record<string, string>>
  /** Default: one that `close` stops. */
  readonly server?: TestServer
  /** The URL of the database, where it is not that of `server` alone. */
  readonly databaseUrl?: string
  /** An empty folder that is kept. Default: one that `close` removes. */
  readonly dir?: string
}

export interface TestCluster {
  readonly server: TestServer
  readonly nodes: readonly [ClusterNode, ...ClusterNode[]]
  readonly front: Front
  readonly dir: string
  /** The nodes that take requests. */
  live(): readonly ClusterNode[]
  close(): Promise<void>
}

/** The program of a node: the profile `full` as it is in the sources, unless SLUICE_CLUSTER_PROGRAM names another one. */
export const programOfNodes = (): string => process.env.SLUICE_CLUSTER_PROGRAM ?? join(ROOT, 'profiles', 'full.ts')

/** Resolves once every node listens. */
export async function startCluster(options: TestClusterOptions = {}): Promise<TestCluster> {
  const {
    nodes: count = 2,
    isCluster = true,
    sharesConfig = false,
    toml = '',
    clusterKeys = () => '',
    program = programOfNodes(),
    env = () => ({}),
  } = options
  const dir = options.dir ?? mkdtempSync(join(tmpdir(), 'sluice-cluster-'))
  const server = options.server ?? (await startPostgres({ inMemory: true }))
  // The first value that is encrypted creates the key.
  openSecretBox(dir).encrypt('', '')
  const create = (name: string): ClusterNode =>
    new ClusterNode({
      name,
      dir,
      program,
      toml,
      databaseUrl: options.databaseUrl ?? server.url,
      secretKey: join(dir, 'secret.key'),
      clusterToml: isCluster
        ? `[cluster]\nname = "test"\nnode = "${name}"\n${sharesConfig ? '' : 'config = "file"\n'}${clusterKeys(name)}`
        : '',
      sharesConfig,
      env: { NODE_COMPILE_CACHE: join(ROOT, 'node_modules', '.cache', 'sluice', 'sources'), ...env(name) },
    })
  const nodes: readonly [ClusterNode, ...ClusterNode[]] = [
    create('node-1'),
    ...Array.from({ length: count - 1 }, (_, at) => create(`node-${at + 2}`)),
  ]
  const live = () => nodes.filter(({ url, isStopped }) => url !== undefined && !isStopped)
  let turn = 0
  const front = await startFront(() => {
    const urls = live().flatMap(({ url }) => url ?? [])
    turn++
    return urls.map((_, at) => urls[(at + turn) % urls.length] ?? '')
  })
  const close = async (): Promise<void> => {
    await front.close()
    await Promise.all(nodes.map((node) => node.close()))
    if (!options.server) await server.stop()
    if (options.dir === undefined) rmSync(dir, { recursive: true, force: true })
  }
  const started = await Promise.all(nodes.map((node) => node.start()))
  const failed = nodes[started.indexOf(undefined)]
  if (failed) {
    const { log } = failed
    await close()
    throw new Error(`${failed.name} did not start: ${log}`)
  }
  return { server, nodes, front, dir, live, close }
}
