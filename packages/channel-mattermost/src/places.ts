/** The channel's knowledge of conversations and threads. It asks the server for unknown ones. */
import { BoundedMap, pathSegment } from '@sluice/kit'
import { list, members, text } from '@sluice/kit/foreign-json'
import { AppError, type Inbound, overheardPart } from '@sluice/sdk'
import type { MattermostApi } from './api.ts'
import { isId } from './ids.ts'
import { isMentioned } from './mentions.ts'
import { type Bot, type Post, parseEdit, parseMessage, postOf } from './parse.ts'

export interface Place {
  readonly id: string
  /** The time of the newest post. */
  readonly lastPostAtMs: number
}

/** The part of the configuration that decides which messages are accepted. */
export interface Accepted {
  readonly channel: string | undefined
  readonly mentionOnly: boolean
}

const DIRECT = 'D'
export const KNOWN_MAX = 1000
const CHANNELS_BYTES_MAX = 32 * 1024 * 1024

export class Places {
  readonly #api: MattermostApi
  readonly #bot: Bot
  readonly #accepted: Accepted
  readonly #types = new BoundedMap<string, string>(KNOWN_MAX)
  /** Whether the bot, or a message that mentions it, began a thread. */
  readonly #ownThreads = new BoundedMap<string, boolean>(KNOWN_MAX)

  constructor(api: MattermostApi, bot: Bot, accepted: Accepted) {
    this.#api = api
    this.#bot = bot
    this.#accepted = accepted
  }

  /** Returns the conversations whose messages are accepted. */
  async list(signal: AbortSignal): Promise<readonly Place[]> {
    const channels = list(await this.#api.read('/users/me/channels', signal, CHANNELS_BYTES_MAX)).map(members)
    return channels.flatMap(({ id, type, last_post_at }) => {
      if (!isId(id) || !this.isAccepted(id)) return []
      this.learn(id, text(type))
      return [{ id, lastPostAtMs: typeof last_post_at === 'number' ? last_post_at : 0 }]
    })
  }

  /** Remembers the type of a conversation, which some events contain. */
  learn(channel: string, type: string): void {
    if (type !== '') this.#types.set(channel, type)
  }

  isAccepted(channel: string): boolean {
    return this.#accepted.channel === undefined || this.#accepted.channel === channel
  }

  /** Tells whether a conversation is one of the bot and one person. */
  async isDirect(channel: string, signal: AbortSignal): Promise<boolean> {
    const known = this.#types.get(channel)
    if (known !== undefined) return known === DIRECT
    const type = text(members(await this.#api.read(`/channels/${pathSegment(channel)}`, signal)).type)
    this.learn(channel, type)
    return type === DIRECT
  }

  /** Returns the message of a post; undefined for a post that no person wrote, and for another conversation. Throws as `MattermostApi.read` does. */
  async messageOf(post: Post, signal: AbortSignal): Promise<Inbound | undefined> {
    if (!this.isAccepted(post.channel) || post.deletedAtMs > 0) return undefined
    const isDirect = await this.isDirect(post.channel, signal)
    const message = parseMessage(post, this.#bot, isDirect)
    if (!message || !this.#accepted.mentionOnly || isDirect) return message
    const isForBot = this.#mentionsBot(post) || (post.root !== '' && (await this.#isOwnThread(post.root, signal)))
    return isForBot ? message : { ...message, overheardOnly: true }
  }

  /** Parses the edit of a post. Only a mention tells that it is for the bot, because the daemon knows the messages before it. */
  editOf(post: Post, isDirect: boolean): Inbound | undefined {
    const edit = parseEdit(post, this.#bot, isDirect)
    return edit && { ...edit, ...overheardPart(edit, this.#accepted.mentionOnly) }
  }

  /** Returns a post; undefined if it is gone, or the bot may not read it. */
  async post(id: string, signal: AbortSignal): Promise<Post | undefined> {
    try {
      return postOf(await this.#api.read(`/posts/${pathSegment(id)}`, signal))
    } catch (error) {
      if (error instanceof AppError && (error.code === 'forbidden' || error.code === 'invalid_request')) return undefined
      throw error
    }
  }

  #mentionsBot({ json }: Post): boolean {
    return isMentioned(text(json.message), this.#bot.username)
  }

  async #isOwnThread(root: string, signal: AbortSignal): Promise<boolean> {
    const known = this.#ownThreads.get(root)
    if (known !== undefined) return known
    const post = await this.post(root, signal)
    const isOwn = post !== undefined && (post.user === this.#bot.userId || this.#mentionsBot(post))
    this.#ownThreads.set(root, isOwn)
    return isOwn
  }
}
