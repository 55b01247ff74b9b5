/** Hands the events of a connection to the inbox, and catches up when messages may be missing. */
import { MissedFirst } from '@sluice/kit'
import { type Members, text } from '@sluice/kit/foreign-json'
import { AppError, type Deliver, type Host, type Inbound, type ListenContext } from '@sluice/sdk'
import type { WorkchatApi } from './api.ts'
import { CatchUp } from './catch-up.ts'
import { scopeOf, type WorkchatCursors } from './cursors.ts'
import type { Identities } from './identities.ts'
import { type Bot, identityIn, messageIn, parseEvent, timeOf } from './parse.ts'
import { createCompleting } from './quotes.ts'

/** How long a new message waits for missed ones. The platform expects its acknowledgement within 3 s. */
export const ORDER_WAIT_MS = 1500
/** The largest number of events that may wait to be stored. */
export const PENDING_MAX = 1000

export interface IntakeOptions {
  readonly host: Host
  readonly api: WorkchatApi
  readonly cursors: WorkchatCursors
  readonly identities: Identities
  readonly bot: Bot
}

export class Intake {
  readonly #options: IntakeOptions
  readonly #deliver: Deliver
  readonly #missed: MissedFirst
  #pending = 0

  constructor(options: IntakeOptions, deliver: Deliver, context: ListenContext) {
    const { host, api, cursors, bot, identities } = options
    this.#options = options
    const completing = createCompleting({ host, api, bot, isAllowed: (sender) => identities.allows(sender) })
    this.#deliver = async (inbound) => deliver(await completing(inbound))
    const catchUp = new CatchUp(host, api, cursors, bot, this.#deliver, context.report.gap)
    const [hold, read] = [() => cursors.hold(), (signal: AbortSignal) => catchUp.run(signal)]
    this.#missed = new MissedFirst({ clock: host.clock, context, waitMs: ORDER_WAIT_MS, hold, read })
  }

  /** Resolves once the message of the event is durable. Throws `unavailable` if it could not be stored. */
  async take(envelope: Members): Promise<void> {
    this.#pending += 1
    try {
      if (this.#pending > PENDING_MAX) {
        this.startCatchUp()
        throw new AppError('unavailable', `More than ${PENDING_MAX} events of workchat wait to be stored`)
      }
      const identity = identityIn(envelope)
      if (identity) this.#options.identities.learn(identity)
      for (const inbound of parseEvent(envelope, this.#options.bot)) await this.#take(inbound, messageIn(envelope))
    } catch (error) {
      this.#options.host.log.warn('message not stored, waiting for workchat to send it again', { error })
      throw error
    } finally {
      this.#pending -= 1
    }
  }

  /** Reads messages that may be missing. The cursors stay where they are until that has succeeded. */
  startCatchUp(): void {
    this.#missed.start()
  }

  async #take(inbound: Inbound, message: Members): Promise<void> {
    const { cursors } = this.#options
    if (inbound.pressed) return this.#deliver(inbound)
    if (inbound.changes) {
      // A change comes after the messages before it, one of which it concerns.
      await this.#missed.passAll()
      return this.#deliver(inbound)
    }
    const time = timeOf(message)
    const scopes = scopesOf(message)
    if (time !== '') {
      for (const scope of scopes) cursors.follow(scope, { after: String(Number(time) - 1), type: text(message.chat_type) })
    }
    await this.#missed.pass()
    await this.#missed.store(this.#deliver(inbound), () => {
      if (time !== '') for (const scope of scopes) cursors.advance(scope, time)
    })
  }
}

/** The history of a conversation has the first messages of its threads, and that of a thread has all of its messages. */
function scopesOf(message: Members): readonly string[] {
  const [chat, thread, root] = [text(message.chat_id), text(message.thread_id), text(message.root_id)]
  const inChat = thread === '' || root === '' ? [scopeOf({ chat })] : []
  return [...inChat, ...(thread === '' ? [] : [scopeOf({ chat, thread })])]
}
