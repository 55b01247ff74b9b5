/** People who are asked about tool calls: each answers once, some only after the daemon was killed many times, and some when an operator ends the turn. */
import { setTimeout as sleep } from 'node:timers/promises'
import { markIn } from './marks.ts'
import type { Random } from './random.ts'
import { ask } from './sops/ask.ts'
import type { Traffic } from './traffic.ts'
import type { World } from './world.ts'

export interface People {
  /** Ends with `signal`. `isPatient`: they wait for as many kills as each of them wishes; else they answer at once. */
  run(url: string, signal: AbortSignal, options: { readonly isPatient: boolean }): Promise<void>
}

export interface PeopleOptions {
  readonly world: Pick<World, 'recorder'>
  readonly traffic: Pick<Traffic, 'answer'>
  readonly random: Random
}

/** What the API shows of a question. */
interface Waiting {
  readonly run_id: string
  readonly message: string
}

const LOOK_MS = 50
const WITHDRAW_MS_MAX = 20
/** Kills that a person waits for; more than five make a message dead where waiting counts as an attempt. */
const PATIENCE: readonly [number, ...number[]] = [0, 1, 3, 6, 7, 8]

export function createPeople({ world: { recorder }, traffic, random }: PeopleOptions): People {
  /** By the mark of each question that was seen: from how many kills on it is answered. */
  const patience = new Map<string, number>()
  const answered = new Set<string>()

  const take = async ({ run_id, message }: Waiting, url: string, signal: AbortSignal, isPatient: boolean): Promise<void> => {
    const asker = recorder.messages.get(markIn(message) ?? '')
    if (!asker) return recorder.see({ type: 'nonsense', detail: `a question of no message: ${message}` })
    const { mark, gate } = asker
    if (!patience.has(mark)) {
      patience.set(mark, recorder.kills + random.pick(PATIENCE))
      recorder.see({ type: 'waiting', mark })
    }
    if (isPatient && recorder.kills < (patience.get(mark) ?? 0)) return
    const withdraw = async (): Promise<void> => {
      await pause(random.within(0, WITHDRAW_MS_MAX), signal)
      // A turn that is not taken up again yet cannot be ended: the next look tries again.
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
        for (const waiting of (shown?.body.approvals ?? []) as readonly Waiting[]) {
          const taking = take(waiting, url, signal, isPatient).finally(() => busy.delete(taking))
          busy.add(taking)
        }
        await pause(LOOK_MS, signal)
      }
      await Promise.all(busy)
    },
  }
}

/** Ends early with `signal`. */
const pause = (ms: number, signal: AbortSignal): Promise<void> => sleep(ms, undefined, { signal }).catch(() => undefined)
