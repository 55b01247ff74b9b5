/** Turns what waits for people into notifications. They name a tool, a procedure or a channel, and no text of people. */
import { type Clock, type Logger, sha256Hex, type WaitingWork } from '@sluice/sdk'
import type { Notification } from './outgoing.ts'

const DAY_MS = 24 * 3_600_000
const NAME_CHARS_MAX = 80
/** Dead letters of this time are one notification, because an outage makes many. */
const GATHER_MS = 2_000
/** The time after a notification about dead letters until the next one. */
const PAUSE_MS = 60_000

type WaitingApproval = Extract<WaitingWork, { readonly kind: 'approval' }>
type DeadLetter = Extract<WaitingWork, { readonly kind: 'dead_letter' }>

const short = (name: string): string => (name.length > NAME_CHARS_MAX ? `${name.slice(0, NAME_CHARS_MAX - 1).toWellFormed()}…` : name)

const SUBJECT = {
  tool: (name: string) => `A call of the tool ${short(name)}`,
  sop: (name: string) => `A step of the procedure ${short(name)}`,
  event: () => 'A program',
} as const

export function approvalNotification(waiting: WaitingApproval, nowMs: number): Notification {
  const { runId, stepId, gate, name, expiresAtMs, mayDecide, isOpen } = waiting
  return {
    shown: {
      title: 'An approval waits',
      body: `${SUBJECT[gate](name)} waits for your decision.`,
      place: '#/approvals',
      tag: `approval ${sha256Hex(`${runId}\0${stepId}`)}`,
    },
    urgency: 'high',
    untilMs: Math.min(expiresAtMs ?? Number.POSITIVE_INFINITY, nowMs + DAY_MS),
    concerns: mayDecide,
    isOpen,
  }
}

export const testNotification = (nowMs: number): Notification => ({
  shown: { title: 'Sluice', body: 'Notifications work in this browser.', place: '#/browser', tag: 'test' },
  urgency: 'high',
  untilMs: nowMs + 60_000,
  concerns: () => true,
  isOpen: async () => true,
})

/** Dead letters that share one notification. */
interface Gathered {
  readonly channels: Set<string>
  messages: number
  replies: number
  /** The number of the last one in its box. */
  number: number
}

const nothingGathered = (): Gathered => ({ channels: new Set(), messages: 0, replies: 0, number: 0 })

function deadLetterNotification({ channels, messages, replies, number }: Gathered, nowMs: number): Notification {
  const count = messages + replies
  const [channel = ''] = channels
  const where = channels.size === 1 ? short(channel) : `${channels.size} channels`
  const box = messages > 0 ? 'inbox' : 'outbox'
  const subject = count > 1 ? `${count} messages and replies on ${where} were` : `A ${replies > 0 ? 'reply' : 'message'} on ${where} was`
  return {
    shown: {
      title: 'Dead letters',
      body: `${subject} given up.`,
      place: count > 1 ? `#/deliveries/${box}?state=dead` : `#/deliveries/${box}/${number}`,
      tag: 'dead letters',
    },
    urgency: 'normal',
    untilMs: nowMs + DAY_MS,
    concerns: ({ role }) => role === 'operator',
    isOpen: async () => true,
  }
}

export interface DeadLetterOptions {
  readonly clock: Clock
  readonly log: Logger
  notify(notification: Notification): Promise<void>
}

/** Gathers dead letters, so that an outage does not cause a notification for each. */
export class DeadLetters {
  readonly #options: DeadLetterOptions
  readonly #ended = new AbortController()
  #gathered = nothingGathered()
  #running: Promise<void> | undefined

  constructor(options: DeadLetterOptions) {
    this.#options = options
  }

  add({ direction, channel, number }: DeadLetter): void {
    const gathered = this.#gathered
    gathered.channels.add(channel)
    gathered.number = number
    if (direction === 'inbound') gathered.messages += 1
    else gathered.replies += 1
    this.#running ??= this.#run()
  }

  async close(): Promise<void> {
    this.#ended.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    const { clock, log, notify } = this.#options
    const { signal } = this.#ended
    while (this.#gathered.channels.size > 0 && !signal.aborted) {
      await clock.sleep(GATHER_MS, signal)
      const gathered = this.#gathered
      this.#gathered = nothingGathered()
      await notify(deadLetterNotification(gathered, clock.nowMs())).catch((error: unknown) =>
        log.error('dead letters not notified', { error }),
      )
      await clock.sleep(PAUSE_MS, signal)
    }
    this.#running = undefined
  }
}
