/** People who decide whatever waits: several at once, by every means there is, at random; some questions they leave alone. */
import { setTimeout as sleep } from 'node:timers/promises'
import { TELEGRAM_GROUP } from '@sluice/testkit/fakes/telegram'
import type { TelegramMessage } from '@sluice/testkit/fakes/telegram-chats'
import { run as runCommand } from '../../daemons/bundle.ts'
import type { Random } from '../random.ts'
import { ask } from './ask.ts'
import { type Attempt, gateName, type Means } from './history.ts'
import { PEOPLE, type SopsWorld } from './world.ts'

export interface DecidersOptions {
  readonly world: Pick<SopsWorld, 'recorder' | 'messenger'>
  readonly random: Random
  readonly profile: string
  readonly dataDir: string
}

export interface Deciders {
  /** Ends with `signal`, once no attempt is under way. `leavesNone`: what has not been left alone before is answered. */
  run(url: string, signal: AbortSignal, options?: { readonly leavesNone?: boolean }): Promise<void>
}

/** What the API shows of an approval, as far as it takes to decide it. */
interface Waiting {
  readonly run_id: string
  readonly step_id: string
  readonly expires_at: string | null
  readonly prompts: readonly { readonly provider_id: string | null }[]
}

const LOOK_MS = 40
/** Whoever got no answer tries again. */
const AGAIN_MS = 1200
const DELAY_MS_MAX = 500
const SHARE = { left: 0.08, approve: 0.85, approveAgain: 0.25, stranger: 0.1, two: 0.35, three: 0.1 }
const MEANS: readonly [Means, ...Means[]] = ['http', 'http', 'http', 'press', 'press', 'press', 'reply', 'reply', 'command']
/** Processes are dear. */
const COMMANDS_AT_ONCE = 1
const DECIDED = /\bwas (?<state>approved|rejected|expired|cancelled)\b/

export function createDeciders({ world: { recorder, messenger }, random, profile, dataDir }: DecidersOptions): Deciders {
  /** Questions nobody answers. */
  const left = new Set<string>()
  let commands = 0

  const promptOf = ({ prompts }: Waiting): TelegramMessage | undefined => {
    const [, number] = /:(\d+)$/.exec(prompts.at(-1)?.provider_id ?? '') ?? []
    return number === undefined ? undefined : messenger.messages(TELEGRAM_GROUP).find(({ id }) => id === Number(number))
  }

  /** One attempt; undefined: that way is not open now. */
  const attemptOn = (waiting: Waiting): ((url: string, signal: AbortSignal) => Promise<void>) | undefined => {
    const { run_id: run, step_id: step } = waiting
    const means = random.pick(MEANS)
    const tag = `by-${recorder.nextNumber()}`
    const approve = random.chance(step.includes('-again-') ? SHARE.approveAgain : SHARE.approve)
    const begin = (by: string, isEntitled = true): void =>
      recorder.see({ type: 'deciding', tag, run, step, means, approve, by, isEntitled } satisfies { type: 'deciding' } & Attempt)
    if (means === 'http') {
      return async (url, signal) => {
        begin('device:')
        const path = `/api/approvals/${encodeURIComponent(run)}/${encodeURIComponent(step)}`
        const answered = await ask(url, { path, body: { approved: approve, feedback: tag }, signal })
        if (answered?.status === 200) recorder.see({ type: 'won', tag })
        else if (answered?.status === 409) recorder.see({ type: 'lost', tag, state: String(answered.body.state) })
        else if (answered) recorder.see({ type: 'nonsense', detail: `${tag} was answered ${answered.status}: ${answered.body.error}` })
      }
    }
    if (means === 'command') {
      if (commands >= COMMANDS_AT_ONCE) return undefined
      return async () => {
        begin('cli:')
        commands += 1
        const [verb, ...feedback] = approve ? ['approve'] : ['reject', tag]
        const { code, stderr } = await runCommand(profile, ['approvals', verb ?? '', run, step, ...feedback, '--data-dir', dataDir])
        commands -= 1
        const { state } = DECIDED.exec(stderr)?.groups ?? {}
        if (code === 0) recorder.see({ type: 'won', tag })
        else if (state !== undefined) recorder.see({ type: 'lost', tag, state })
        else recorder.see({ type: 'nonsense', detail: `the command of ${tag} ended with ${code}: ${stderr}` })
      }
    }
    const message = promptOf(waiting)
    if (!message) return undefined
    const isEntitled = !random.chance(SHARE.stranger)
    const id = isEntitled ? random.pick([PEOPLE.ada, PEOPLE.bob]) : PEOPLE.eve
    return async () => {
      begin(`telegram:${id}`, isEntitled)
      const data = message.buttons?.flat().find((value) => value.startsWith(approve ? 'a.' : 'r.'))
      if (means === 'press' && data !== undefined) messenger.press({ message, from: { id }, data })
      else messenger.say({ chat: TELEGRAM_GROUP, from: { id }, text: `${approve ? 'approve' : 'reject'} ${tag}`, replyTo: message.id })
    }
  }

  const decide = async (waiting: Waiting, url: string, signal: AbortSignal): Promise<void> => {
    await pause(random.within(0, DELAY_MS_MAX), signal)
    const people = random.chance(SHARE.three) ? 3 : random.chance(SHARE.two) ? 2 : 1
    const attempts = Array.from({ length: people }, () => attemptOn(waiting))
    if (!signal.aborted) await Promise.all(attempts.map((attempt) => attempt?.(url, signal)))
    await pause(AGAIN_MS, signal)
  }

  return {
    async run(url, signal, { leavesNone = false } = {}) {
      const busy = new Map<string, Promise<void>>()
      while (!signal.aborted) {
        const answered = await ask(url, { path: '/api/approvals?state=pending&limit=200', signal })
        for (const waiting of (answered?.body.approvals ?? []) as readonly Waiting[]) {
          const name = gateName(waiting.run_id, waiting.step_id)
          if (busy.has(name) || left.has(name)) continue
          if (waiting.expires_at !== null && !leavesNone && random.chance(SHARE.left)) left.add(name)
          else
            busy.set(
              name,
              decide(waiting, url, signal).finally(() => busy.delete(name)),
            )
        }
        await pause(LOOK_MS, signal)
      }
      await Promise.all(busy.values())
    },
  }
}

/** Ends early with `signal`. */
const pause = (ms: number, signal: AbortSignal): Promise<void> => sleep(ms, undefined, { signal }).catch(() => undefined)
