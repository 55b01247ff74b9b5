/** Hands the messages of a connection to the inbox, and catches up when messages may be missing. */
import { type Members, members, text } from '@sluice/kit/foreign-json'
import { AppError, type Deliver, type Host, type Inbound } from '@sluice/sdk'
import { CatchUp } from './catch-up.ts'
import type { Cursors, Place } from './cursors.ts'
import { type Bot, parseMessage, parsePresses } from './parse.ts'
import { retryDelayMs } from './refusal.ts'
import type { SlackApi } from './slack-api.ts'
import { timestampBefore } from './timestamp.ts'

/** How long a new message waits for missed ones. Slack expects its acknowledgement within 3 s. */
const ORDER_WAIT_MS = 1500
/** The largest number of envelopes that may wait to be stored. */
const PENDING_MAX = 1000

export class Intake {
  readonly #host: Host
  readonly #cursors: Cursors
  readonly #bot: Bot
  readonly #deliver: Deliver
  readonly #signal: AbortSignal
  readonly #catchUp: CatchUp
  /** New messages wait for it, so that missed messages are delivered before them. */
  #order: Promise<unknown> = Promise.resolve()
  /** Settles when the newest message and all messages before it are stored or have failed. */
  #stored: Promise<unknown> = Promise.resolve()
  #pending = 0
  #isCatchingUp = false
  #hasGap = false

  constructor(host: Host, api: SlackApi, cursors: Cursors, bot: Bot, deliver: Deliver, signal: AbortSignal) {
    this.#host = host
    this.#cursors = cursors
    this.#bot = bot
    this.#deliver = deliver
    this.#signal = signal
    this.#catchUp = new CatchUp(host, api, cursors, bot, deliver)
  }

  /** Resolves once the messages of the envelope are durable. Throws `unavailable` if they could not be stored. */
  async take(type: string, payload: Members): Promise<void> {
    this.#pending += 1
    try {
      if (type === 'events_api') await this.#takeMessage(members(payload.event))
      else if (type === 'interactive') await Promise.all(parsePresses(payload, this.#bot).map(this.#deliver))
    } catch (error) {
      this.#host.log.warn('message not stored, waiting for slack to send it again', { error })
      throw error
    } finally {
      this.#pending -= 1
    }
  }

  /** Reads messages that may be missing, and tries again until it succeeds or the signal aborts. */
  startCatchUp(): void {
    this.#cursors.hold()
    this.#hasGap = true
    if (!this.#isCatchingUp) this.#order = Promise.race([this.#closeGap(), this.#host.clock.sleep(ORDER_WAIT_MS, this.#signal)])
  }

  async #closeGap(): Promise<void> {
    this.#isCatchingUp = true
    for (let failures = 0; this.#hasGap && !this.#signal.aborted; failures++) {
      this.#hasGap = false
      try {
        await this.#catchUp.run(this.#signal)
      } catch (error) {
        if (this.#signal.aborted) break
        this.#hasGap = true
        this.#host.log.warn('missed messages not read, trying again', { error })
        await this.#host.clock.sleep(retryDelayMs(failures, error), this.#signal)
      }
    }
    this.#isCatchingUp = false
    if (!this.#signal.aborted) this.#cursors.release()
  }

  async #takeMessage(event: Members): Promise<void> {
    const message = parseMessage(event, this.#bot)
    if (!message) return
    const ts = text(event.ts)
    this.#cursors.follow({ channel: message.to.to }, timestampBefore(ts))
    if (this.#pending > PENDING_MAX) {
      this.startCatchUp()
      throw new AppError('unavailable', `More than ${PENDING_MAX} messages of slack wait to be stored`)
    }
    await this.#order
    const durable = this.#deliver(message)
    this.#stored = Promise.allSettled([durable, this.#stored]).then(([{ status }]) => {
      if (status === 'rejected') return this.startCatchUp()
      for (const place of placesOf(event, message)) this.#cursors.advance(place, ts)
    })
    await durable
  }
}

/**
 * Returns the places whose cursors a message moves: its conversation, its thread, or both for a reply that was also sent to
 * the channel.
 */
function placesOf(event: Members, { to }: Inbound): readonly Place[] {
  const thread = text(event.thread_ts)
  const isInThread = thread !== '' && thread !== text(event.ts)
  const isInChannel = !isInThread || event.subtype === 'thread_broadcast'
  return [...(isInChannel ? [{ channel: to.to }] : []), ...(isInThread ? [{ channel: to.to, thread }] : [])]
}
