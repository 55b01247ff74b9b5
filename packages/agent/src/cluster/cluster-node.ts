/** A node of a cluster: turns that clients wait for run on the node that was asked, and nodes tell each other of turns. */
import { every, type Permit, shareRuns } from '@sluice/kit'
import { type Clock, type ClusterNotice, isLeaseLost, type Logger, type Store } from '@sluice/sdk'
import type { TurnRequest, TurnResult } from '../turn/turn.ts'
import { type ClusterTurnStorage, isDirectTurn, type TurnOwnership, type TurnStorage } from '../turn/turn-home.ts'
import type { LiveTurn } from '../turn/turn-scope.ts'
import { UNFINISHED_MAX } from '../turn/unfinished.ts'
import type { AgentNode, LocalTurns } from './agent-node.ts'
import { DirectTurns } from './direct-turns.ts'
import type { RemoteTurns } from './remote-turns.ts'
import { SharedSpending } from './shared-spending.ts'

/** How long a node uses what it has read of the spending of all nodes. */
const SPENDING_FRESH_MS = 2000
/** How often a node looks for turns that others have left, and for requests to abort its own. */
const LOOK_EVERY_MS = 1000

export interface ClusterNodeDeps {
  readonly store: TurnStorage & Pick<Store, 'under'>
  readonly cluster: ClusterTurnStorage
  readonly shardOwner?: Pick<TurnOwnership, 'of'> | undefined
  readonly remote: RemoteTurns
  readonly local: LocalTurns
  readonly clock: Clock
  readonly log: Logger
}

export class ClusterNode implements AgentNode {
  readonly #deps: ClusterNodeDeps
  readonly spending: AgentNode['spending']
  readonly mayStoreLate = false
  readonly remote: RemoteTurns
  readonly #direct: DirectTurns
  /** The live turns whose end other nodes wait for. */
  readonly #followed = new Set<string>()
  readonly #stopped = new AbortController()
  /** Resumes turns that were left behind, follows requests to abort, and finds the ends of turns of other nodes. */
  readonly resumeStored = shareRuns(() => this.#look())
  #isWatching = false

  constructor(deps: ClusterNodeDeps) {
    const { store, cluster, remote, clock, log } = deps
    this.#deps = deps
    this.remote = remote
    this.spending = { store: new SharedSpending(store.turns, clock), freshMs: SPENDING_FRESH_MS }
    this.#direct = new DirectTurns({ turns: cluster.turns, store, remote, log })
    cluster.notices.listen((notice) => this.#heard(notice))
  }

  isDirect({ session, delivery }: Pick<TurnRequest, 'session' | 'delivery'>): boolean {
    return !delivery && isDirectTurn(session)
  }

  conduct(turn: LiveTurn, permit: Permit, conduct: () => Promise<TurnResult>): Promise<TurnResult> {
    if (!turn.isDirect) return conduct()
    return this.#direct.conduct(turn, permit, conduct, () => {
      this.#deps.local.forget(turn)
      this.resumeStored().catch(ignore)
    })
  }

  resumes(turnId: string): void {
    this.#deps.cluster.turns.leftBehind.add(turnId)
  }

  ended(turnId: string): void {
    if (this.#followed.delete(turnId)) this.#deps.cluster.notices.send({ what: 'ended', turn: turnId })
  }

  /** A node that dies writes nothing that others would notice. */
  watch(): void {
    if (this.#isWatching) return
    this.#isWatching = true
    void every(this.#deps.clock, LOOK_EVERY_MS, this.#stopped.signal, () => {
      this.resumeStored().catch(ignore)
    })
  }

  stop(): void {
    this.#stopped.abort()
  }

  look(): Promise<void> {
    return this.resumeStored()
  }

  async requestAbort(turnId: string, owner: string | undefined): Promise<boolean> {
    const { cluster, store, local } = this.#deps
    const live = local.get(turnId)
    if (live && !isLeaseLost(live.cancellation.reason)) return false
    const isAsked = (await store.turns.requestAbort(turnId, owner)) || (await cluster.turns.requestAbort(turnId, owner))
    if (isAsked) cluster.notices.send({ what: 'abort', turn: turnId })
    return isAsked
  }

  async #look(): Promise<void> {
    const { local, cluster } = this.#deps
    if (local.isStopping()) return
    await this.#resumeLeft(cluster.turns)
    for (const id of await cluster.turns.abortsRequested()) local.abort(id)
    await this.remote.look()
  }

  /** Resumes turns that no process runs, and forgets the ones that have ended meanwhile. */
  async #resumeLeft({ leftBehind, abandoned }: ClusterTurnStorage['turns']): Promise<void> {
    const { local } = this.#deps
    const known = [...leftBehind]
    if (local.homes.size === 0 && known.length === 0) return
    await local.resumeAll(async () => {
      const rows = await abandoned(UNFINISHED_MAX)
      const unfinished = new Set(rows.map(({ id }) => id))
      for (const id of known) if (!unfinished.has(id) && !local.get(id)) leftBehind.delete(id)
      return rows
    })
  }

  #heard(notice: ClusterNotice): void {
    const { local, shardOwner } = this.#deps
    if (local.isStopping()) return
    if (notice.what === 'abort') local.abort(notice.turn)
    else if (notice.what === 'turn' && shardOwner?.of(notice.shard)) this.resumeStored().catch(ignore)
    else if (notice.what === 'follow' && local.get(notice.turn)) this.#followed.add(notice.turn)
    else if (notice.what === 'ended') this.remote.ended(notice.turn).catch(ignore)
  }
}

const ignore = (): undefined => undefined
