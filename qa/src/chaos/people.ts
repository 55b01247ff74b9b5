/**
 * Simulates the people who are asked about tool calls. Each answers once: some only after the daemon was killed several times,
 * and some at the moment when an operator aborts the turn.
 */

import type { Random } from '@sluice/testkit/random'
import { markIn } from './marks.ts'
import { ask, pause } from './request.ts'
import type { Traffic } from './traffic.ts'
import type { World } from './world.ts'

export interface People {
  /** Runs until `signal` aborts. `isPatient`: each person waits for a random number of kills; otherwise people answer at once. */
  run(url: string, signal: AbortSignal, options: { readonly isPatient: boolean }): Promise<void>
}

export interface PeopleOptions {
  readonly world: World
  readonly traffic: Traffic
  readonly random: Random
  /** How often they look for questions. Default: 50 ms. */
  readonly pollMs?: number
}

/** An open approval, as the API shows it. */
interface OpenApproval {
  readonly run_id: string
  readonly message: string
}

const POLL_MS = 50
const WITHDRAW_MS_MAX = 20
/** Kills that a person waits for. If waiting counted as an attempt, more than five would make the message dead. */
const PATIENCE: readonly [number, ...number[]] = [0, 1, 3, 6, 7, 8]

export function createPeople({ world: { recorder }, traffic, random, pollMs = POLL_MS }: PeopleOptions): People {
  /** By the mark of each question: the number of kills after which it is answered. */
  const patience = new Map<string, number>()
  const answered = new Set<string>()

  const handle = async ({ run_id, message }: OpenApproval, url: string, signal: AbortSignal, isPatient: boolean): Promise<void> => {
    const asker = recorder.messages.get(markIn(message) ?? '')
    if (!asker) return recorder.see({ type: 'unexpected', detail: `an approval belongs to no message of the run: ${message}` })
    const { mark, gate } = asker
    if (!patience.has(mark)) {
      patience.set(mark, recorder.kills + random.pick(PATIENCE))
      recorder.see({ type: 'waiting', mark })
    }
    if (isPatient && recorder.kills < (patience.get(mark) ?? 0)) return
    const withdraw = async (): Promise<void> => {
      await pause(random.within(0, WITHDRAW_MS_MAX), signal)
      // A turn that is not resumed yet cannot be aborted: the next poll tries again.
      await ask(url, { path: `/api/turns/${run_id}/abort`, body: {}, signal })
    }
    const answer = async (): Promise<void> => {
      if (answered.has(mark)) return
      answered.add(mark)
      await pause(random.within(0, WITHDRAW_MS_MAX), signal)
      await traffic.answer(asker, gate === 'approved', url, signal)
    }
    await Promise.all([answer(), ...(gate === 'withdrawn' ? [withdraw()] : [])])
  }

  return {
    async run(url, signal, { isPatient }) {
      const busy = new Set<Promise<void>>()
      while (!signal.aborted) {
        const shown = await ask(url, { path: '/api/approvals?state=pending&limit=200', signal })
        for (const approval of (shown?.body.approvals ?? []) as readonly OpenApproval[]) {
          const handling = handle(approval, url, signal, isPatient).finally(() => busy.delete(handling))
          busy.add(handling)
        }
        await pause(pollMs, signal)
      }
      await Promise.all(busy)
    },
  }
}
