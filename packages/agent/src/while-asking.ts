/**
 * Releases what a turn holds while a person decides: its slot, its time and its attempt, so that no number of restarts
 * meanwhile ends it. It keeps its lane.
 */
import type { AppError } from '@sluice/sdk'
import type { WhileAsking } from './call-scope.ts'
import type { Deadline, Deadlines } from './deadlines.ts'
import type { Slot } from './slots.ts'
import type { LiveTurn } from './turn-scope.ts'

export interface Held {
  readonly slot: Slot
  readonly deadlines: Deadlines
  readonly deadline: Deadline
  /** Why the daemon stops, once it does: from then on nobody is asked. */
  readonly stopReason: () => AppError | undefined
  /** As `TurnStore.waits`, of a turn that is kept; never rejects. */
  waits(isWaiting: boolean): Promise<void>
}

export const createWhileAsking =
  (turn: LiveTurn, { slot, deadlines, deadline, stopReason, waits }: Held): WhileAsking =>
  async (ask) => {
    const reason = stopReason()
    if (reason) turn.cancellation.cancel(reason)
    turn.cancellation.throwIfCancelled()
    turn.phase = 'asking'
    turn.onWait?.(true)
    const goOn = deadlines.pause(deadline)
    slot.leave()
    await waits(true)
    try {
      return await ask()
    } finally {
      await waits(false)
      turn.onWait?.(false)
      // A turn that has ended needs no slot to say so.
      turn.cancellation.throwIfCancelled()
      await turn.cancellation.race(slot.retake())
      goOn()
      turn.phase = 'running'
    }
  }
