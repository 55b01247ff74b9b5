/** Reports the folders and programs of this node to the others, and says what differs between the nodes. */
import type { Clock, ClusterStore, Logger } from '@sluice/sdk'
import type { Snapshot } from '../features/snapshot.ts'
import type { HealthWatch } from '../health.ts'
import { compareNodes, type NodeFinding } from './compare-nodes.ts'
import { NodeFolders, type NodeFoldersOptions } from './node-folders.ts'

const LOOK_MS = 20_000
/** Something counts when two looks have found it: files are copied to one node after the other. */
const SECOND_LOOK_MS = 2_000

export interface NodeWatchOptions extends Omit<NodeFoldersOptions, 'node'> {
  readonly cluster: Pick<ClusterStore, 'node' | 'nodes' | 'report'>
  readonly clock: Clock
  readonly log: Logger
  readonly health: Pick<HealthWatch, 'nodesCompared'>
  readonly snapshot: () => Pick<Snapshot, 'service'>
}

/** Resolves once `signal` has aborted and the marks of this node are deleted. Never rejects. */
export async function watchNodes(options: NodeWatchOptions, signal: AbortSignal): Promise<void> {
  const { cluster, clock, log, health, snapshot } = options
  const folders = new NodeFolders({ ...options, node: cluster.node })
  let before: readonly NodeFinding[] = []
  let lasting: readonly NodeFinding[] = []
  for (let waitMs = SECOND_LOOK_MS; !signal.aborted; waitMs = LOOK_MS) {
    try {
      const others = (await cluster.nodes()).flatMap(({ node }) => (node === cluster.node ? [] : [node]))
      await cluster.report({ folders: await folders.look(others), programs: [...(snapshot().service('mcpPrograms')?.() ?? [])] })
      const found = compareNodes(await cluster.nodes())
      const now = found.filter((one) => isIn(one, before))
      logChanges(log, lasting, now)
      health.nodesCompared(now)
      before = found
      lasting = now
    } catch (error) {
      // The store itself reports an outage of the database, and the next look comes soon.
      log.debug('the nodes of the cluster were not compared', { error })
    }
    await clock.sleep(waitMs, signal)
  }
  await folders.leave()
}

const isIn = ({ text }: NodeFinding, list: readonly NodeFinding[]): boolean => list.some((one) => one.text === text)

function logChanges(log: Logger, before: readonly NodeFinding[], now: readonly NodeFinding[]): void {
  for (const { state, text, fix } of now.filter((one) => !isIn(one, before))) log[state === 'failing' ? 'error' : 'warn'](text, { fix })
  for (const { text } of before.filter((one) => !isIn(one, now))) log.info('This no longer holds.', { problem: text })
}
