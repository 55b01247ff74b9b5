/**
 * The turns that clients of this node wait for, in a cluster: each runs here, under the lease of its session, so that one turn of a
 * session runs at a time on all nodes together.
 */
import type { Permit } from '@sluice/kit'
import { AppError, type ClusterTurns, isLeaseLost, type Lease, type Logger, leaseLost, type Store } from '@sluice/sdk'
import type { TurnResult } from '../turn/turn.ts'
import type { TurnHome, TurnStorage } from '../turn/turn-home.ts'
import type { LiveTurn } from '../turn/turn-scope.ts'
import { type RemoteTurns, resultOf } from './remote-turns.ts'

export interface DirectTurnDeps {
  readonly turns: Pick<ClusterTurns, 'begin' | 'leftBehind'>
  readonly store: TurnStorage & Pick<Store, 'under'>
  readonly remote: Pick<RemoteTurns, 'follow'>
  readonly log: Logger
}

export class DirectTurns {
  readonly #deps: DirectTurnDeps

  constructor(deps: DirectTurnDeps) {
    this.#deps = deps
  }

  /**
   * Waits for the session of the turn, and conducts the turn. A stored turn that another node has run meanwhile, because this one seemed
   * dead, has the result of that node; `gaveUp` is called before that is waited for, because this node runs the turn again unless another
   * one has. While it waits it holds no permit. A stored turn whose end could not be recorded is left behind.
   */
  async conduct(turn: LiveTurn, permit: Permit, conduct: () => Promise<TurnResult>, gaveUp: () => void): Promise<TurnResult> {
    const { leftBehind } = this.#deps.turns
    let hasEnded = false
    const ended = (): void => {
      hasEnded = true
    }
    try {
      const result = await this.#conduct(turn, permit, conduct, ended)
      leftBehind.delete(turn.id)
      return result
    } catch (error) {
      if (turn.kept && isLeaseLost(error)) return await this.#follow(turn, permit, gaveUp)
      // The next turn in the lane of the session waits for it.
      if (turn.kept && !hasEnded) leftBehind.add(turn.id)
      else leftBehind.delete(turn.id)
      throw error
    }
  }

  /** Calls `ended` once the end of the turn is stored. */
  async #conduct(turn: LiveTurn, permit: Permit, conduct: () => Promise<TurnResult>, ended: () => void): Promise<TurnResult> {
    const { store } = this.#deps
    const homeIn = (home: TurnHome, finish = home.turns.finish): TurnHome => ({
      ...home,
      turns: {
        ...home.turns,
        async finish(end) {
          const replies = await finish(end)
          ended()
          return replies
        },
      },
    })
    const lease = await this.#begin(turn, permit)
    if (!lease) {
      // The cancelled turn records its end, and does nothing else.
      turn.home = homeIn(turn.home)
      return conduct()
    }
    const lose = (): void => {
      if (turn.phase !== 'ending') turn.cancellation.cancel(leaseLost(lease.name))
    }
    try {
      const row = turn.kept && (await store.turns.get(turn.id))
      if (row && row.endedAtMs !== null) {
        ended()
        return resultOf(row)
      }
      const owned = store.under(lease)
      lease.lost.addEventListener('abort', lose, { once: true })
      turn.home = homeIn(owned, (end) => {
        const replies = owned.turns.finish(end)
        // The session is free from the commit that ends the turn.
        lease.lost.removeEventListener('abort', lose)
        this.#release(lease)
        return replies
      })
      return await conduct()
    } finally {
      lease.lost.removeEventListener('abort', lose)
      this.#release(lease)
    }
  }

  /** Resolves to the result of a turn that has lost its session. The turn stays left behind until a process ends it. */
  async #follow({ id }: LiveTurn, permit: Permit, gaveUp: () => void): Promise<TurnResult> {
    const { remote, log } = this.#deps
    log.info('the session of a turn was lost: its result is that of the next attempt, on this node or another one', { turn: id })
    permit.release()
    gaveUp()
    return await remote.follow(id)
  }

  #release(lease: Lease): void {
    lease.release().catch((error: unknown) => this.#deps.log.warn('session of a turn not released', { lease: lease.name, error }))
  }

  /** Resolves to undefined once the turn is cancelled. Rejects for a stored turn that cannot begin now and is resumed later. */
  async #begin(turn: LiveTurn, permit: Permit): Promise<Lease | undefined> {
    const { id, session, owner, cancellation } = turn
    let lease: Lease | undefined
    try {
      lease = await this.#deps.turns.begin({ id, session, owner }, { signal: cancellation.signal, onWait: () => permit.release() })
      await cancellation.race(permit.reacquire())
      return lease
    } catch (error) {
      void lease?.release().catch(() => undefined)
      if (cancellation.reason) return undefined
      if (turn.kept) throw error
      cancellation.cancel(error instanceof AppError ? error : new AppError('unavailable', 'The turn cannot begin now', { cause: error }))
      return undefined
    }
  }
}
