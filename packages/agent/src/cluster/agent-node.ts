/** The services of the node to the agent. The node has the store to itself (`SingleNode`) or shares it (`ClusterNode`). */
import type { Permit } from '@sluice/kit'
import type { Homes } from '@sluice/ownership'
import { type StoreChange, shardOfTurn, type TurnStore, type UnfinishedTurn } from '@sluice/sdk'
import type { TurnRequest, TurnResult } from '../turn/turn.ts'
import type { ResumableHome, TurnOwnership, TurnStorage } from '../turn/turn-home.ts'
import type { LiveTurn } from '../turn/turn-scope.ts'
import type { RemoteTurns } from './remote-turns.ts'

export interface AgentNode {
  /** Where the limits of spending read what was spent, and for how long a reading holds. */
  readonly spending: { readonly store: Pick<TurnStore, 'spentUsd'>; readonly freshMs: number }
  /** True if a turn may begin before it is stored, and its start may be stored with it: no other node looks for it meanwhile. */
  readonly mayStoreLate: boolean
  /** The turns that another process runs. */
  readonly remote: RemoteTurns
  /** Whether a turn runs on the node that received the request, under the lease of its session and not of its shard. */
  isDirect(turn: Pick<TurnRequest, 'session' | 'delivery'>): boolean
  /** Conducts a turn that holds this permit, once it may run here. */
  conduct(turn: LiveTurn, permit: Permit, conduct: () => Promise<TurnResult>): Promise<TurnResult>
  /** Takes note of a direct turn that is resumed because no node runs it. */
  resumes(turnId: string): void
  /** Takes note that a turn neither runs nor waits here any more. */
  ended(turnId: string): void
  /** Begins to look for turns that other nodes leave behind. */
  watch(): void
  /** Follows a change that another process made. */
  look(change: StoreChange): Promise<void>
  /** Resumes stored turns that neither run nor wait here. */
  resumeStored(): Promise<void>
  /** Asks the process that runs a turn to abort it. Resolves to false if no other process runs it. */
  requestAbort(turnId: string, owner: string | undefined): Promise<boolean>
  stop(): void
}

/** The turns of this process, as its node uses them. */
export interface LocalTurns {
  /** The shards whose turns this process resumes. */
  readonly homes: Homes<ResumableHome>
  /** True once the daemon stops. */
  isStopping(): boolean
  get(turnId: string): LiveTurn | undefined
  abort(turnId: string): boolean
  forget(turn: LiveTurn): void
  /** Resumes the unfinished turns of these shards. */
  resume(home: ResumableHome): Promise<unknown>
  /** Resumes what `list` lists and does not run here. */
  resumeAll(list: () => Promise<readonly UnfinishedTurn[]>): Promise<unknown>
}

export interface SingleNodeDeps {
  readonly store: TurnStorage
  readonly ownership?: TurnOwnership | undefined
  readonly remote: RemoteTurns
  readonly local: LocalTurns
}

/** A process that has the store to itself, or the work of some shards. */
export class SingleNode implements AgentNode {
  readonly #deps: SingleNodeDeps
  readonly spending: AgentNode['spending']
  readonly mayStoreLate = true
  readonly remote: RemoteTurns

  constructor(deps: SingleNodeDeps) {
    this.#deps = deps
    this.remote = deps.remote
    this.spending = { store: deps.store.turns, freshMs: Number.POSITIVE_INFINITY }
  }

  isDirect(): boolean {
    return false
  }

  conduct(_: LiveTurn, __: Permit, conduct: () => Promise<TurnResult>): Promise<TurnResult> {
    return conduct()
  }

  resumes(): void {}

  ended(): void {}

  watch(): void {}

  stop(): void {}

  async look(change: StoreChange): Promise<void> {
    const concerned = this.#deps.local.homes.concernedBy(change)
    // All at once, so that the store can read the turns of all shards together.
    await Promise.all(concerned.map((home) => this.#lookAt(home)))
    await this.remote.look()
  }

  async resumeStored(): Promise<void> {
    const { homes, resume } = this.#deps.local
    await Promise.all([...homes].map(resume))
  }

  async requestAbort(turnId: string, owner: string | undefined): Promise<boolean> {
    const { ownership, store } = this.#deps
    if (!ownership?.isStarted || ownership.ownsAll) return false
    const row = await store.turns.get(turnId)
    if (!row || ownership.of(shardOfTurn(row.sessionId, row.id))) return false
    return store.turns.requestAbort(turnId, owner)
  }

  async #lookAt(home: ResumableHome): Promise<void> {
    const { local, ownership } = this.#deps
    for (const id of await home.turns.abortsRequested()) local.abort(id)
    if (ownership?.ownsAll === false && local.homes.has(home)) await local.resume(home)
  }
}
