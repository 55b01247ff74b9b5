/** Hands the messages of a connection to the inbox, and catches up when messages may be missing. */
import { MissedFirst, SenderNames } from '@sluice/kit'
import { type Members, members, text, textAt } from '@sluice/kit/foreign-json'
import { AppError, type Deliver, errorText, type Host, type Inbound, isAllowed, type ListenContext, namePart } from '@sluice/sdk'
import type { SlackApi } from './api.ts'
import { CatchUp } from './catch-up.ts'
import { type SlackCursors, scopeOf } from './cursors.ts'
import { type Bot, parseChange, parseCommand, parseMessage, parsePresses } from './parse.ts'
import { rootOf, threadRoots } from './thread-roots.ts'
import { timestampBefore } from './timestamp.ts'

/** How long a new message waits for missed ones. Slack expects its acknowledgement within 3 s. */
const ORDER_WAIT_MS = 1500
/** The largest number of envelopes that may wait to be stored. */
const PENDING_MAX = 1000

export class Intake {
  readonly #host: Host
  readonly #cursors: SlackCursors
  readonly #bot: Bot
  readonly #deliver: Deliver
  readonly #catchUp: CatchUp
  readonly #missed: MissedFirst
  #pending = 0

  constructor(host: Host, api: SlackApi, cursors: SlackCursors, bot: Bot, deliver: Deliver, context: ListenContext) {
    this.#host = host
    this.#cursors = cursors
    this.#bot = bot
    const roots = threadRoots(host, api, bot)
    const names = senderNames(host, api, bot)
    this.#deliver = async (inbound) => {
      const [quoting, { name = '' }] = await Promise.all([roots.quotingOnce(inbound, rootOf(inbound)), names.named(inbound)])
      return deliver({ ...quoting, ...namePart(name) })
    }
    const catchUp = new CatchUp(host, api, cursors, bot, this.#deliver, context.report.gap)
    this.#catchUp = catchUp
    const [hold, read] = [() => cursors.hold(), (signal: AbortSignal) => catchUp.run(signal)]
    this.#missed = new MissedFirst({ clock: host.clock, context, waitMs: ORDER_WAIT_MS, hold, read })
  }

  /** Resolves once the messages of the envelope are durable. Throws `unavailable` if they could not be stored. */
  async take(type: string, payload: Members): Promise<void> {
    this.#pending += 1
    try {
      if (type === 'events_api') await this.#takeMessage(members(payload.event))
      else if (type === 'interactive') await Promise.all(parsePresses(payload, this.#bot).map(this.#deliver))
      else if (type === 'slash_commands') await Promise.all([parseCommand(payload, this.#bot) ?? []].flat().map(this.#deliver))
    } catch (error) {
      this.#host.log.warn('message not stored, waiting for slack to send it again', { error })
      throw error
    } finally {
      this.#pending -= 1
    }
  }

  /** Delivers a change after the messages before it, one of which it concerns. */
  async #takeChange(change: Inbound): Promise<void> {
    await this.#missed.passAll()
    await this.#deliver(change)
  }

  /** Reads messages that may be missing. The cursors stay where they are until that has succeeded. */
  startCatchUp(): void {
    this.#missed.start()
  }

  async #takeMessage(event: Members): Promise<void> {
    const change = parseChange(event, this.#bot)
    if (change) return this.#takeChange(change)
    const message = parseMessage(event, this.#bot)
    if (!message) return
    const ts = text(event.ts)
    this.#cursors.follow(message.to.to, { after: timestampBefore(ts) })
    if (this.#pending > PENDING_MAX) {
      this.startCatchUp()
      throw new AppError('unavailable', `More than ${PENDING_MAX} messages of slack wait to be stored`)
    }
    if (this.#missed.isReading) for (const scope of scopesOf(event, message)) this.#catchUp.prefer(scope)
    await this.#missed.pass()
    await this.#missed.store(this.#deliver(message), () => {
      for (const scope of scopesOf(event, message)) this.#cursors.advance(scope, ts)
    })
  }
}

/** Source: https://docs.slack.dev/reference/methods/users.info */
const senderNames = (host: Host, api: SlackApi, { config }: Bot): SenderNames =>
  new SenderNames({
    host,
    channel: 'slack',
    isAllowed: (sender) => isAllowed(config.allowed_users, sender),
    async read({ sender: user }, signal) {
      const answer = await api.call('users.info', { user }, { signal }).catch((error: unknown) => {
        // A missing scope concerns all senders.
        throw errorText(error).includes('missing_scope') ? new AppError('forbidden', errorText(error)) : error
      })
      return textAt(answer, 'user.profile.display_name', 'user.profile.real_name', 'user.real_name', 'user.name')
    },
  })

/**
 * Returns the scopes whose cursors a message moves: its conversation, its thread, or both for a reply that was also sent to
 * the channel.
 */
function scopesOf(event: Members, { to }: Inbound): readonly string[] {
  const thread = text(event.thread_ts)
  const isInThread = thread !== '' && thread !== text(event.ts)
  const isInChannel = !isInThread || event.subtype === 'thread_broadcast'
  return [...(isInChannel ? [to.to] : []), ...(isInThread ? [scopeOf({ channel: to.to, thread })] : [])]
}
