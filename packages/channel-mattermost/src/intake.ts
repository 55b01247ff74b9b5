/**
 * Hands messages, their changes and presses to the inbox in the order of their events, and catches up when some may be missing. When too
 * many wait, newer ones are read from the conversations later.
 */
import { BoundedMap, LinkedQueue, MissedFirst, pathSegment, QuotedMessages, retry, SenderNames } from '@sluice/kit'
import { type Members, members, parsedOrUndefined, text } from '@sluice/kit/foreign-json'
import { AppError, type Deliver, errorText, type Host, type Inbound, isAllowed, type ListenContext, namePart } from '@sluice/sdk'
import type { MattermostApi } from './api.ts'
import { isButtonEmoji } from './buttons.ts'
import { CatchUp } from './catch-up.ts'
import { advance, type MattermostCursors } from './cursors.ts'
import { isId } from './ids.ts'
import { type Bot, parseDeletion, parsePress, postIn, readPost } from './parse.ts'
import type { Places } from './places.ts'

interface Task {
  readonly event: string
  readonly data: Members
}

const EVENTS: ReadonlySet<string> = new Set(['posted', 'post_edited', 'post_deleted', 'reaction_added'])
export const WAITING_MAX = 2000
/** How many of the last delivered ids are known, so that the same message is not delivered again within a run. */
export const DELIVERED_MAX = 2000
/** How long new messages wait for missed ones. */
const ORDER_WAIT_MS = 5000
const STORE_RETRY_MS_MAX = 30_000

export class Intake {
  readonly #host: Host
  readonly #cursors: MattermostCursors
  readonly #places: Places
  readonly #bot: Bot
  readonly #deliver: Deliver
  readonly #context: ListenContext
  readonly #missed: MissedFirst
  readonly #roots: QuotedMessages
  readonly #names: SenderNames
  readonly #tasks = new LinkedQueue<Task>()
  readonly #delivered = new BoundedMap<string, true>(DELIVERED_MAX)
  #waiting = 0
  #running: Promise<void> | undefined
  /** Keeps the position before the events that were dropped because too many waited. */
  #release: (() => void) | undefined

  constructor(
    host: Host,
    api: MattermostApi,
    cursors: MattermostCursors,
    places: Places,
    bot: Bot,
    allow: readonly string[],
    deliver: Deliver,
    context: ListenContext,
  ) {
    this.#host = host
    this.#cursors = cursors
    this.#places = places
    this.#bot = bot
    this.#deliver = deliver
    this.#context = context
    this.#roots = new QuotedMessages({
      host,
      channel: 'mattermost',
      async read(id, conversation, signal) {
        const post = await places.post(id, signal)
        return post?.channel === conversation ? readPost(post, bot) : undefined
      },
    })
    this.#names = new SenderNames({
      host,
      channel: 'mattermost',
      isAllowed: (sender) => isAllowed(allow, sender),
      async read({ sender }, signal) {
        const { nickname, first_name, last_name, username } = members(await api.read(`/users/${pathSegment(sender)}`, signal))
        return text(nickname) || `${text(first_name)} ${text(last_name)}`.trim() || text(username)
      },
    })
    const catchUp = new CatchUp(host, api, cursors, places, bot, (inbound) => this.#deliverOnce(inbound), context.report.gap)
    const [hold, read] = [() => cursors.hold(), (signal: AbortSignal) => catchUp.run(signal)]
    this.#missed = new MissedFirst({ clock: host.clock, context, waitMs: ORDER_WAIT_MS, hold, read })
  }

  /** Takes an event of the connection. */
  take(event: string, data: Members): void {
    if (!EVENTS.has(event)) return
    if (this.#waiting >= WAITING_MAX) {
      this.#drop()
      return
    }
    this.#waiting += 1
    this.#tasks.push({ event, data })
    this.#running ??= this.#run()
  }

  /** Reads messages that may be missing. The position stays where it is until that has succeeded. */
  startCatchUp(): void {
    this.#missed.start()
  }

  /** Resolves once no event is being stored. */
  async settled(): Promise<void> {
    await this.#running
  }

  #drop(): void {
    if (this.#release) return
    this.#host.log.warn('too many messages wait: reading newer ones later', { channel: 'mattermost' })
    this.#release = this.#cursors.hold()
  }

  async #run(): Promise<void> {
    const { signal } = this.#context
    for (let task = this.#tasks.shift(); task && !signal.aborted; task = this.#tasks.shift()) {
      await this.#missed.settled()
      if (!signal.aborted) await this.#process(task)
      this.#waiting -= 1
    }
    this.#running = undefined
    if (!this.#release || signal.aborted) return
    this.startCatchUp()
    this.#release()
    this.#release = undefined
  }

  /** Tries until everything of an event is stored, or can never be. */
  async #process(task: Task): Promise<void> {
    const { clock, log } = this.#host
    const { signal } = this.#context
    const process = async (): Promise<true> => {
      try {
        await this.#store(task)
      } catch (error) {
        if (isTemporary(error)) throw error
        log.error('message cannot be stored', { channel: 'mattermost', event: task.event, error })
      }
      return true
    }
    const onFailure = (error: unknown, failures: number): void => {
      if (failures === 1) log.warn('message not stored, trying again', { channel: 'mattermost', reason: errorText(error) })
    }
    const isStored = await retry(process, { clock, signal, longestMs: STORE_RETRY_MS_MAX, onFailure })
    const post = isStored && task.event === 'posted' ? postIn(task.data) : undefined
    if (post) advance(this.#cursors, post.createdAtMs, clock.nowMs())
  }

  async #store({ event, data }: Task): Promise<void> {
    const { signal } = this.#context
    if (event === 'reaction_added') return this.#storePress(members(parsedOrUndefined(text(data.reaction))))
    const post = postIn(data)
    if (!post || !this.#places.isAccepted(post.channel)) return
    if (event === 'posted') {
      this.#places.learn(post.channel, text(data.channel_type))
      const message = await this.#places.messageOf(post, signal)
      if (message) await this.#deliverOnce(message)
      return
    }
    const isDirect = await this.#places.isDirect(post.channel, signal)
    const change = event === 'post_edited' ? this.#places.editOf(post, isDirect) : parseDeletion(post, this.#bot, isDirect)
    if (change) await this.#deliverOnce(change)
  }

  async #storePress(reaction: Members): Promise<void> {
    const { signal } = this.#context
    const { post_id, user_id, emoji_name } = reaction
    if (!isButtonEmoji(text(emoji_name)) || user_id === this.#bot.userId || !isId(post_id)) return
    const post = await this.#places.post(post_id, signal)
    if (!post || post.user !== this.#bot.userId) return
    const press = parsePress(reaction, post, this.#bot, await this.#places.isDirect(post.channel, signal))
    if (press) await this.#deliverOnce(press)
  }

  async #deliverOnce(inbound: Inbound): Promise<void> {
    if (this.#delivered.has(inbound.id)) return
    // Mattermost sends no words of the post that begins a thread, and in a history no names.
    const quoting = this.#roots.quotingOnce(inbound, inbound.to.thread ?? '')
    const [quoted, { name = '' }] = await Promise.all([quoting, this.#names.named(inbound)])
    await this.#deliver({ ...quoted, ...namePart(name) })
    this.#delivered.set(inbound.id, true)
  }
}

/** Whether storing may succeed later: the store or the server could not be reached, or the server failed. */
const isTemporary = (error: unknown): boolean =>
  error instanceof AppError && ['unavailable', 'rate_limited', 'upstream', 'upstream_timeout', 'aborted'].includes(error.code)
