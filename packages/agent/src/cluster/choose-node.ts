import type { Clock, Logger, Store } from '@sluice/sdk'
import type { ClusterTurnStorage, TurnOwnership, TurnStorage } from '../turn/turn-home.ts'
import { type AgentNode, type LocalTurns, SingleNode } from './agent-node.ts'
import { ClusterNode } from './cluster-node.ts'
import { RemoteTurns } from './remote-turns.ts'

export interface AgentNodeOptions {
  readonly store: TurnStorage & Partial<Pick<Store, 'under'>>
  readonly cluster?: ClusterTurnStorage | undefined
  readonly ownership?: TurnOwnership
  readonly clock: Clock
  readonly log: Logger
}

/** The only place of the agent that asks whether there is a cluster. */
export function agentNode({ store, cluster, ownership, clock, log }: AgentNodeOptions, local: LocalTurns): AgentNode {
  const { under } = store
  if (!cluster || !under) return new SingleNode({ store, ownership, remote: new RemoteTurns({ store, clock, log }), local })
  const remote = new RemoteTurns({ store, clock, log, notices: cluster.notices })
  return new ClusterNode({ store: { ...store, under }, cluster, shardOwner: ownership, remote, local, clock, log })
}
