/** Quotes the first message of a thread in the first message that a person writes there, because Slack does not send it along. */
import { BoundedMap, signalScope } from '@sluice/kit'
import { list, members, text } from '@sluice/kit/foreign-json'
import { errorText, type Host, hasWordsOfOthers, type Inbound, type Quoted, quotedPart, wordsOf } from '@sluice/sdk'
import type { SlackApi } from './api.ts'
import { type Bot, readMessage } from './parse.ts'

/** Slack expects the acknowledgement of a message within 3 s. */
const WAIT_MS = 1500
const THREADS_MAX = 2000

interface Root {
  readonly quoted: Quoted
  /** Whether its writer has written all of its words. */
  readonly isOwn: boolean
}

export class ThreadRoots {
  readonly #host: Host
  readonly #api: SlackApi
  readonly #bot: Bot
  /** The first message of each thread, by its address. */
  readonly #roots = new BoundedMap<string, Promise<Root | undefined>>(THREADS_MAX)
  /** The threads in which a person has written, by their addresses and the person. */
  readonly #seen = new BoundedMap<string, true>(THREADS_MAX)

  constructor(host: Host, api: SlackApi, bot: Bot) {
    this.#host = host
    this.#api = api
    this.#bot = bot
  }

  /** Resolves to the message, with the first message of its thread as a quote when its sender has not written there before. Never rejects. */
  async quoting(message: Inbound): Promise<Inbound> {
    const { to, id, sender } = message
    if (to.thread === undefined || message.changes || message.pressed) return message
    const root = `${to.to}:${to.thread}`
    const isFirst = !this.#seen.get(`${root}/${sender}`)
    this.#seen.set(`${root}/${sender}`, true)
    // Later messages wait for the first one, which they must not overtake.
    if (root === id || !isFirst) return this.#roots.get(root)?.then(() => message) ?? message
    const reading = this.#roots.get(root) ?? this.#read(to.to, to.thread)
    this.#roots.set(root, reading)
    const found = await reading
    if (!found) return message
    const { quoted, isOwn } = found
    return { ...message, quoted: { ...quoted, ...(isOwn && quoted.author?.id === sender && { by: 'sender' }) } }
  }

  async #read(channel: string, thread: string): Promise<Root | undefined> {
    try {
      using limit = signalScope([], WAIT_MS, this.#host.clock)
      const answer = await this.#api.call('conversations.replies', { channel, ts: thread, limit: 1 }, { signal: limit.signal })
      const event = list(answer.messages)
        .map(members)
        .find(({ ts }) => ts === thread)
      if (!event) return undefined
      const { userId } = this.#bot
      const read = readMessage({ ...event, type: 'message', channel }, this.#bot)
      const isOwn = !hasWordsOfOthers(read)
      const by = isOwn && event.user === userId ? 'bot' : undefined
      const author = { name: text(members(event.user_profile).real_name), id: text(event.user) || text(event.bot_id) }
      const { quoted } = quotedPart({ id: `${channel}:${thread}`, author, by, text: wordsOf(read), attachments: read.attachments })
      return quoted && { quoted, isOwn }
    } catch (error) {
      this.#host.log.debug('first message of a thread not read', {
        channel: 'slack',
        conversation: channel,
        thread,
        reason: errorText(error),
      })
      return undefined
    }
  }
}
