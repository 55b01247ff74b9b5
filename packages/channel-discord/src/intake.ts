/**
 * Hands messages, their changes and button presses to the inbox. Messages of one conversation stay in order, and one that cannot be stored
 * is tried again before the next. When too many wait, newer ones are fetched from the conversation's history later.
 */
import { LinkedQueue, retry, SerialQueue } from '@sluice/kit'
import { AppError, type Deliver, errorText, type Host, type Inbound } from '@sluice/sdk'
import type { Message } from './catch-up.ts'
import { CURSORS_MAX, type DiscordCursors } from './cursors.ts'
import type { Conversation, Press } from './parse.ts'
import { snowflakeBefore } from './snowflake.ts'

/** The requests that the intake makes to the platform. */
export interface IntakeSource {
  /**
   * Yields the messages after the conversation's cursor, oldest first. Throws `forbidden` or `invalid_request` when it can no
   * longer be read.
   */
  missedIn(channel: string, signal: AbortSignal): AsyncIterable<Message>
  /** Tells the platform that a press was received. */
  acknowledge(press: Press): Promise<void>
}

type Task =
  | { readonly kind: 'message'; readonly message: Message }
  | { readonly kind: 'change'; readonly change: Inbound }
  | { readonly kind: 'press'; readonly press: Press }
  | { readonly kind: 'history' }

/** The tasks of one conversation, which run one after another. */
interface Lane {
  readonly tasks: LinkedQueue<Task>
  /** Whether the newest waiting task fetches the history, so that a message dropped now is not lost. */
  endsWithHistory: boolean
}

/** The largest number of tasks in all lanes. */
export const WAITING_MAX = 2000
const LANES_MAX = 2 * CURSORS_MAX
/** The longest delay before a message is stored again. */
const STORE_RETRY_MS_MAX = 30_000

export class Intake {
  readonly #host: Host
  readonly #cursors: DiscordCursors
  readonly #source: IntakeSource
  readonly #deliver: Deliver
  readonly #signal: AbortSignal
  readonly #lanes = new Map<string, Lane>()
  readonly #running = new Set<Promise<void>>()
  /** One conversation at a time fetches its history, which keeps within the platform's rate limits. */
  readonly #histories = new SerialQueue({ name: 'the history of a conversation', tasksMax: LANES_MAX + WAITING_MAX })
  #waiting = 0

  /** When `signal` aborts, the intake drops unfinished work. The cursors stay before it, so that the next start fetches it. */
  constructor(host: Host, cursors: DiscordCursors, source: IntakeSource, deliver: Deliver, signal: AbortSignal) {
    this.#host = host
    this.#cursors = cursors
    this.#source = source
    this.#deliver = deliver
    this.#signal = signal
  }

  /** Takes a message, or moves the conversation's cursor in order if the message has no `inbound`. */
  message({ channel, guild }: Conversation, message: Message): void {
    this.#cursors.follow(channel, { after: snowflakeBefore(message.id), guild })
    if (this.#waiting < WAITING_MAX) {
      this.#enter(channel, { kind: 'message', message })
      return
    }
    if (this.#lanes.get(channel)?.endsWithHistory || this.#lanes.size >= LANES_MAX) return
    this.#host.log.warn('too many messages wait: fetching newer ones later', { channel: 'discord', conversation: channel })
    this.#enter(channel, { kind: 'history' })
  }

  /** Takes a change of a message, after the messages before it. A message that is fetched later has its newest text. */
  change(channel: string, change: Inbound): void {
    if (this.#waiting < WAITING_MAX) this.#enter(channel, { kind: 'change', change })
    else this.#host.log.warn('too many messages wait: dropped a change of a message', { channel: 'discord', conversation: channel })
  }

  /** Takes a press, in a lane of its own: the platform shows a failure to the person who pressed after three seconds. */
  press(press: Press): void {
    const conversation = press.inbound.to.to
    if (this.#waiting < WAITING_MAX) this.#enter(`press ${conversation}`, { kind: 'press', press })
    else this.#host.log.warn('too many messages wait: dropped a button press', { channel: 'discord', conversation })
  }

  /** Fetches in every known conversation the messages that may have been missed. */
  catchUp(): void {
    for (const [channel] of this.#cursors.entries()) {
      if (!this.#lanes.get(channel)?.endsWithHistory) this.#enter(channel, { kind: 'history' })
    }
  }

  /** Resolves once no task is running. */
  async settled(): Promise<void> {
    await Promise.all(this.#running)
  }

  #enter(name: string, task: Task): void {
    this.#waiting += 1
    const existing = this.#lanes.get(name)
    const lane = existing ?? { tasks: new LinkedQueue<Task>(), endsWithHistory: false }
    lane.tasks.push(task)
    // A change takes no message in, so that the history before it still ends the lane.
    if (task.kind !== 'change') lane.endsWithHistory = task.kind === 'history'
    if (existing) return
    this.#lanes.set(name, lane)
    const run = this.#runLane(name, lane).finally(() => this.#running.delete(run))
    this.#running.add(run)
  }

  async #runLane(name: string, lane: Lane): Promise<void> {
    for (let task = lane.tasks.shift(); task && !this.#signal.aborted; task = lane.tasks.shift()) {
      if (lane.tasks.isEmpty) lane.endsWithHistory = false
      if (task.kind === 'history') await this.#takeHistory(name)
      else if (task.kind === 'message') await this.#takeMessage(name, task.message)
      else if (task.kind === 'change') await this.#store(task.change)
      else await this.#takePress(task.press)
      this.#waiting -= 1
    }
    this.#lanes.delete(name)
  }

  async #takeMessage(channel: string, { id, inbound, edit }: Message): Promise<void> {
    for (const one of [inbound, edit]) if (one && !(await this.#store(one))) return
    this.#cursors.advance(channel, id)
  }

  async #takePress(press: Press): Promise<void> {
    if (!(await this.#store(press.inbound))) return
    await this.#source.acknowledge(press).catch((error: unknown) => {
      this.#host.log.debug('button press not acknowledged', { channel: 'discord', reason: errorText(error) })
    })
  }

  /** Tries until the inbox has stored the message or can never store it. Returns false only when the signal aborted first. */
  async #store(inbound: Inbound): Promise<boolean> {
    const { clock, log } = this.#host
    const store = async (): Promise<true> => {
      try {
        await this.#deliver(inbound)
      } catch (error) {
        if (error instanceof AppError && error.code === 'unavailable') throw error
        log.error('message cannot be stored', { channel: 'discord', message: inbound.id, error })
      }
      return true
    }
    const onFailure = (error: unknown, failures: number): void => {
      if (failures === 1) log.warn('message not stored, trying again', { channel: 'discord', reason: errorText(error) })
    }
    return (await retry(store, { clock, signal: this.#signal, longestMs: STORE_RETRY_MS_MAX, onFailure })) ?? false
  }

  async #takeHistory(channel: string): Promise<void> {
    const { clock, log } = this.#host
    const onFailure = (error: unknown): void =>
      log.warn('history not read, trying again', { channel: 'discord', conversation: channel, reason: errorText(error) })
    await retry(() => this.#histories.run(() => this.#fetchHistory(channel)), { clock, signal: this.#signal, onFailure })
  }

  /** Forgets a conversation that can no longer be read. Rejects if another attempt may succeed. */
  async #fetchHistory(channel: string): Promise<void> {
    try {
      for await (const message of this.#source.missedIn(channel, this.#signal)) {
        await this.#takeMessage(channel, message)
        if (this.#signal.aborted) break
      }
    } catch (error) {
      const isGone = error instanceof AppError && (error.code === 'forbidden' || error.code === 'invalid_request')
      if (!isGone || this.#signal.aborted) throw error
      this.#host.log.warn('conversation can no longer be read', { channel: 'discord', conversation: channel, reason: errorText(error) })
      this.#cursors.forget(channel)
    }
  }
}
