/**
 * The reminders of all clients. Each instant of a reminder starts one turn: the turn is started under a key made of the reminder and
 * the instant, which starts a turn only once, and then the instant is recorded as handled. A crash in between repeats the first step.
 * While the turn of a device has no answer, the instant stays open.
 */
import { randomUUID } from 'node:crypto'
import { signalScope } from '@sluice/kit'
import { AppError, type Host, type Standing, sessionKeys, type UnansweredTurn } from '@sluice/sdk'
import type { ScheduleConfig } from './config.ts'
import type { When } from './when.ts'

/** The largest number of reminders of all clients together. */
export const REMINDERS_MAX = 5000
/** The longest sleep, so that jumps of the system clock are noticed. */
const SLEEP_MAX_MS = 60_000
const RETRY_MS = 5_000
/** A turn that begins later than this says so. */
const LATE_MS = 2 * 60_000
/** An instant further in the future was handled while the clock was wrong. */
const AHEAD_MAX_MS = 26 * 3_600_000

export interface Reminder {
  readonly id: string
  /** The client, as in `ToolContext.caller`. */
  readonly caller: string
  /** The standing of the turn that set it; absent in reminders of earlier releases. */
  readonly standing?: Standing
  readonly session: string
  /** Whether it was set in a room; absent in reminders of earlier releases. */
  readonly isInRoom?: boolean
  readonly text: string
  readonly createdAtMs: number
  readonly nextMs: number
  /** Absent for a reminder that is due once. */
  readonly schedule?: { readonly expression: string; readonly timezone: string }
  /** The last instant that started a turn. */
  readonly handledMs?: number
  /** The instant that has begun and whose turn has no answer yet, the instant that the text of the turn names, and what was done for it. */
  readonly open?: { readonly instantMs: number; readonly namedMs: number; readonly turn: UnansweredTurn }
}

const keyOf = ({ session, id }: Reminder): string => `${sessionKeys(session)}${id}`

export class Reminders {
  readonly #host: Host
  readonly #config: ScheduleConfig
  /** One creation at a time, so that two do not share the last free place of a client. */
  #creating: Promise<unknown> = Promise.resolve()
  readonly #ended = new AbortController()
  #changed = new AbortController()
  #running: Promise<void> | undefined

  constructor(host: Host, config: ScheduleConfig) {
    this.#host = host
    this.#config = config
  }

  /** Throws `invalid_request` for a time that is not valid, and `conflict` when the client has too many reminders. */
  async create(given: Pick<Reminder, 'caller' | 'standing' | 'session' | 'isInRoom' | 'text'>, when: When): Promise<Reminder> {
    const { clock, keyValue } = this.#host
    const { dueOf } = await import('./when.ts')
    const nowMs = clock.nowMs()
    const due = dueOf(when, nowMs, this.#config.min_interval_secs * 1000)
    const reminder: Reminder = { id: randomUUID(), ...given, createdAtMs: nowMs, ...due }
    const creating = this.#creating.then(async () => {
      await this.#requireRoom(given.caller)
      await keyValue.set(keyOf(reminder), reminder)
    })
    this.#creating = creating.catch(() => undefined)
    await creating
    this.#wake()
    return reminder
  }

  /** The reminders of one client, or of all, by the time at which they are due next. */
  async list(caller?: string): Promise<readonly Reminder[]> {
    const rows = await this.#host.keyValue.list('session:', REMINDERS_MAX)
    const all = rows.map(({ value }) => value as Reminder)
    return all.filter((one) => caller === undefined || one.caller === caller).sort((a, b) => a.nextMs - b.nextMs)
  }

  /** Resolves to the removed reminder. Throws `not_found`, also when `isMeant` rejects the reminder. */
  async cancel(id: string, isMeant: (reminder: Reminder) => boolean = () => true): Promise<Reminder> {
    const found = (await this.list()).find((one) => one.id === id)
    if (!found || !isMeant(found)) throw new AppError('not_found', 'There is no such reminder')
    await this.#host.keyValue.delete(keyOf(found))
    return found
  }

  /** Starts the turns that become due, until `close`. */
  start(): void {
    this.#running ??= this.#run()
  }

  async close(): Promise<void> {
    this.#ended.abort()
    await this.#running
  }

  #wake(): void {
    this.#changed.abort()
  }

  async #requireRoom(caller: string): Promise<void> {
    const all = await this.list()
    const own = all.filter((one) => one.caller === caller).length
    const { max_per_client } = this.#config
    if (own >= max_per_client)
      throw new AppError('conflict', `This client has ${own} reminders; [schedule] max_per_client is ${max_per_client}. Cancel one first.`)
    if (all.length >= REMINDERS_MAX) throw new AppError('conflict', `There are ${REMINDERS_MAX} reminders, which is the most`)
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#host
    const { signal } = this.#ended
    while (!signal.aborted) {
      this.#changed = new AbortController()
      const waitMs = await this.#fireDue().catch((error: unknown) => {
        log.error('reminders not read, retrying', { error })
        return RETRY_MS
      })
      using rest = signalScope([signal, this.#changed.signal])
      await clock.sleep(Math.min(SLEEP_MAX_MS, Math.max(waitMs, 0)), rest.signal)
    }
  }

  /** Resolves to the time until the next reminder is due, in milliseconds. */
  async #fireDue(): Promise<number> {
    const { clock } = this.#host
    let nextMs = Number.POSITIVE_INFINITY
    for (const stored of await this.list()) {
      if (this.#ended.signal.aborted) break
      const reminder = await this.#corrected(stored)
      if (reminder.nextMs > clock.nowMs()) nextMs = Math.min(nextMs, reminder.nextMs)
      else nextMs = Math.min(nextMs, (await this.#fire(reminder)) ?? Number.POSITIVE_INFINITY)
    }
    return nextMs - clock.nowMs()
  }

  /** Starts the turn of a reminder that is due. Resolves to the time of the next attempt or instant; undefined without one. */
  async #fire(reminder: Reminder): Promise<number | undefined> {
    const { clock, log, keyValue } = this.#host
    const startTurn = this.#host.service('startTurn')
    const nowMs = clock.nowMs()
    if (!startTurn) return nowMs + RETRY_MS
    const { id, session, caller, standing, isInRoom, schedule, open } = reminder
    // A time far in the future was computed while the clock was wrong.
    if (open && open.turn.atMs > nowMs && open.turn.atMs <= nowMs + AHEAD_MAX_MS) return open.turn.atMs
    try {
      const { instantMs: newestMs, missed } = await this.#dueInstant(reminder, nowMs)
      const instantMs = open?.instantMs ?? newestMs
      const text = turnText(reminder, { instantMs: newestMs, missed, nowMs })
      const outcome = await startTurn({
        key: `${id}:${instantMs}`,
        session,
        caller,
        ...(standing && { standing }),
        isInRoom,
        text,
        atMs: instantMs,
        ...(open && { earlier: open.turn }),
      })
      if (typeof outcome === 'object') {
        const isNew = outcome.attempt !== open?.turn.attempt
        const namedMs = isNew ? newestMs : open.namedMs
        await keyValue.swap(keyOf(reminder), reminder, { ...reminder, open: { instantMs, namedMs, turn: outcome } })
        return outcome.atMs
      }
      if (outcome === 'gone') log.warn('reminder removed: its client may no longer talk to the agent', { reminder: id, caller })
      // Instants after the one that the text named are missed ones.
      const nextMs = outcome === 'gone' || !schedule ? undefined : await nextAfter(schedule, open?.namedMs ?? Math.max(nowMs, instantMs))
      const { open: _, ...others } = reminder
      const next = nextMs === undefined ? undefined : { ...others, nextMs, handledMs: instantMs }
      // False when the reminder was cancelled or erased meanwhile.
      await keyValue.swap(keyOf(reminder), reminder, next)
      return nextMs
    } catch (error) {
      log.warn('reminder not started, retrying', { reminder: id, error })
      return nowMs + RETRY_MS
    }
  }

  async #dueInstant({ schedule, nextMs }: Reminder, nowMs: number): Promise<{ readonly instantMs: number; readonly missed: number }> {
    if (!schedule) return { instantMs: nextMs, missed: 0 }
    const { dueInstant } = await import('@sluice/kit/due-instant')
    return dueInstant(schedule, nextMs, nowMs)
  }

  /** Computes the next instant again when the last one was handled while the clock was far ahead. */
  async #corrected(reminder: Reminder): Promise<Reminder> {
    const { clock, keyValue } = this.#host
    const { schedule, handledMs } = reminder
    const nowMs = clock.nowMs()
    if (!schedule || handledMs === undefined || handledMs <= nowMs + AHEAD_MAX_MS) return reminder
    const { handledMs: _, ...others } = reminder
    const corrected = { ...others, nextMs: (await nextAfter(schedule, nowMs)) ?? reminder.nextMs }
    return (await keyValue.swap(keyOf(reminder), reminder, corrected)) ? corrected : reminder
  }
}

async function nextAfter(schedule: NonNullable<Reminder['schedule']>, afterMs: number): Promise<number | undefined> {
  const { nextOccurrence } = await import('@sluice/kit/cron-expression')
  return nextOccurrence(schedule, afterMs) ?? undefined
}

interface Instant {
  readonly instantMs: number
  readonly missed: number
  readonly nowMs: number
}

function turnText({ text, createdAtMs }: Reminder, { instantMs, missed, nowMs }: Instant): string {
  const notes = [
    `This is the reminder that I asked for on ${isoMinute(createdAtMs)}, due at ${isoMinute(instantMs)}.`,
    ...(nowMs - instantMs > LATE_MS ? [`It comes late: it is now ${isoMinute(nowMs)}.`] : []),
    ...(missed > 0 ? [`${missed} earlier times were missed.`] : []),
  ]
  return `${notes.join(' ')}\n\n${text}`
}

const isoMinute = (ms: number): string => `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`
