/**
 * Frees everything a turn holds while a person decides: its permit, its time and its attempt, so that no number of restarts
 * ends the turn meanwhile. The turn keeps its lane.
 */
import type { Permit } from '@sluice/kit'
import type { AppError } from '@sluice/sdk'
import type { Deadline, Deadlines } from './deadlines.ts'
import type { Shares } from './shares.ts'
import type { LiveTurn, WhileAsking } from './turn-scope.ts'

export interface Held {
  readonly permit: Permit
  readonly deadlines: Deadlines
  /** The deadlines that are paused meanwhile. */
  readonly paused: readonly Deadline[]
  /** The reason for the daemon's stop, once it stops: from then on no person is asked. */
  readonly stopReason: () => AppError | undefined
  /** Records the state of a kept turn, as `TurnStore.waits` does. Never rejects. */
  waits(isWaiting: boolean): Promise<void>
  /** The turn counts for the waiting turns of its client, because it holds the memory of its work. */
  readonly shares?: Shares | undefined
}

export const createWhileAsking =
  (turn: LiveTurn, { permit, deadlines, paused, stopReason, waits, shares }: Held): WhileAsking =>
  async (ask) => {
    const reason = stopReason()
    if (reason) turn.cancellation.cancel(reason)
    turn.cancellation.throwIfCancelled()
    turn.phase = 'asking'
    turn.onWait?.(true)
    const resume = paused.map((deadline) => deadlines.pause(deadline))
    permit.release()
    using _ = turn.limited && shares?.count(turn.limited, 'turnsWaiting')
    await waits(true)
    try {
      return await ask()
    } finally {
      await waits(false)
      turn.onWait?.(false)
      // A turn that has ended needs no permit to report its end.
      turn.cancellation.throwIfCancelled()
      await turn.cancellation.race(permit.reacquire())
      for (const resumeOne of resume) resumeOne()
      turn.phase = 'running'
    }
  }
