/** The conversations of the discord fake: messages, threads and files, with the refusals of the REST interface. */
import type { ProviderReply } from '@sluice/testkit/fake-provider'
import { checkDiscordMessage, type DiscordMessageBody } from './fake-body.ts'

/** A message in a conversation, in the shape of the REST interface. */
export interface DiscordMessage {
  readonly id: string
  readonly channel_id: string
  readonly content: string
  readonly author: { readonly id: string; readonly username: string; readonly bot: boolean }
  readonly type: number
  readonly components: readonly unknown[]
  readonly attachments: readonly {
    readonly id: string
    readonly filename: string
    readonly content_type?: string
    readonly size: number
    readonly url: string
  }[]
  readonly message_reference?: { readonly type: number; readonly channel_id: string; readonly message_id: string }
  readonly [member: string]: unknown
}

/** The server's side of the conversations: clock, address and gateway. */
export interface DiscordConversationsOptions {
  readonly bot: DiscordMessage['author']
  /** The server of each conversation; `undefined` for a direct one. */
  readonly guilds: ReadonlyMap<string, string | undefined>
  /** The platform's clock in milliseconds since 1970. */
  nowMs(): number
  /** The address under which files are served. */
  baseUrl(): string
  /** Sends an event to every session of the gateway. */
  dispatch(type: string, data: unknown): void
}

interface UploadedFile {
  readonly name: string
  readonly mime?: string
  readonly bytes: Uint8Array
}

/** The start of the platform's ids, which contain a time. */
const EPOCH_MS = 1_420_070_400_000
/** The messages kept for one conversation. */
const MESSAGES_MAX = 10_000
const NOTED_MAX = 100_000
const HISTORY_MAX = 100

/** The conversations of the fake. Methods that answer a request return the platform's reply or its error. */
export class DiscordConversations {
  /** Every message of the bot, oldest first. */
  readonly sent: DiscordMessage[] = []
  /** The conversations in which a message of the bot would have notified someone. */
  readonly pings: string[] = []
  /** Threads by the id of the message they start from. */
  readonly threads = new Map<string, { readonly name: string; readonly parent: string }>()
  readonly #options: DiscordConversationsOptions
  readonly #guilds: Map<string, string | undefined>
  readonly #messages = new Map<string, DiscordMessage[]>()
  readonly #files = new Map<string, { readonly bytes: Uint8Array; readonly mime: string }>()
  readonly #nonces = new Map<string, DiscordMessage>()
  #ids = 0

  constructor(options: DiscordConversationsOptions) {
    this.#options = options
    this.#guilds = new Map(options.guilds)
  }

  has(channel: string): boolean {
    return this.#guilds.has(channel)
  }

  guildOf(channel: string): string | undefined {
    return this.#guilds.get(channel)
  }

  /** The file served at the path. */
  fileAt(path: string): { readonly bytes: Uint8Array; readonly mime: string } | undefined {
    return this.#files.get(path)
  }

  newId(): string {
    const time = BigInt(Math.floor(this.#options.nowMs()) - EPOCH_MS) << 22n
    return String(time + BigInt(++this.#ids % 4_194_304))
  }

  /** The messages of a conversation, oldest first. */
  list(channel: string): DiscordMessage[] {
    const known = this.#messages.get(channel) ?? []
    this.#messages.set(channel, known)
    return known
  }

  /** The conversation in the shape of the REST interface. */
  show(id: string): object {
    const guild = this.guildOf(id)
    const parent = this.threads.get(id)?.parent
    return {
      id,
      type: guild === undefined ? 1 : parent === undefined ? 0 : 11,
      ...(guild && { guild_id: guild }),
      ...(parent && { parent_id: parent }),
    }
  }

  /** Adds a message of a user and returns its id. */
  say(
    channel: string,
    author: DiscordMessage['author'],
    text: string,
    replyTo: string | undefined,
    files: readonly UploadedFile[],
  ): string {
    return this.#add({ ...this.#messageOf(channel, author, text, replyTo), attachments: this.#keepFiles(files) }).id
  }

  /** Reports the edit of a message by a user. */
  reportEdit(channel: string, id: string, author: DiscordMessage['author'], text: string): void {
    const guild = this.guildOf(channel)
    const { components: _, ...shown } = { ...this.#messageOf(channel, author, text), id }
    const edited = { ...shown, edited_timestamp: new Date(this.#options.nowMs()).toISOString() }
    const all = this.list(channel)
    const at = all.findIndex((message) => message.id === id)
    if (at >= 0 && all[at]?.author.id === author.id) all[at] = { ...all[at], ...edited, components: [] }
    this.#options.dispatch('MESSAGE_UPDATE', { ...edited, ...(guild !== undefined && { guild_id: guild, member: { roles: [] } }) })
  }

  /** Deletes a message and reports it, without the one who deleted it. */
  remove(channel: string, id: string): void {
    const guild = this.guildOf(channel)
    const all = this.list(channel)
    const at = all.findIndex((message) => message.id === id)
    if (at >= 0) all.splice(at, 1)
    this.#options.dispatch('MESSAGE_DELETE', { id, channel_id: channel, ...(guild !== undefined && { guild_id: guild }) })
  }

  /** Answers a request to post a message of the bot. */
  post(channel: string, body: DiscordMessageBody): ProviderReply {
    const problem = checkDiscordMessage(body)
    if (problem) return problem
    const { replyTo, mustExist, nonce, isNonceEnforced, content, components } = body
    const isReferenceValid = replyTo !== undefined && this.list(channel).some(({ id }) => id === replyTo)
    if (replyTo !== undefined && mustExist && !isReferenceValid) return invalid('message_reference', 'Unknown message')
    const repeated = isNonceEnforced && nonce !== undefined ? this.#nonces.get(`${channel} ${nonce}`) : undefined
    if (repeated) return { status: 200, body: repeated }
    const message: DiscordMessage = {
      ...this.#messageOf(channel, this.#options.bot, content, isReferenceValid ? replyTo : undefined),
      components,
      attachments: this.#keepFiles(body.files),
    }
    if (nonce !== undefined) this.#nonces.set(`${channel} ${nonce}`, message)
    if (body.pings(content)) note(this.pings, channel)
    note(this.sent, message)
    return { status: 200, body: this.#add(message) }
  }

  /** Answers a request to edit a message. */
  edit(channel: string, id: string, body: DiscordMessageBody): ProviderReply {
    const all = this.list(channel)
    const at = all.findIndex((message) => message.id === id)
    const message = all[at]
    if (!message) return failure(404, 10008, 'Unknown Message')
    if (message.author.id !== this.#options.bot.id) return failure(403, 50005, 'Cannot edit a message authored by another user')
    const problem = checkDiscordMessage({ ...body, files: message.attachments.length > 0 ? [{ name: '', bytes: new Uint8Array() }] : [] })
    if (problem) return problem
    const editedAt = new Date(this.#options.nowMs()).toISOString()
    const edited = { ...message, content: body.content, components: body.components, edited_timestamp: editedAt }
    all[at] = edited
    const sentAt = this.sent.findIndex((known) => known.id === id)
    if (sentAt >= 0) this.sent[sentAt] = edited
    return { status: 200, body: edited }
  }

  /** Answers a request to start a thread from a message. */
  openThread(channel: string, id: string, json: unknown): ProviderReply {
    const { name, auto_archive_duration } = (json ?? {}) as { name?: unknown; auto_archive_duration?: unknown }
    const guild = this.guildOf(channel)
    if (guild === undefined || this.threads.has(channel)) return failure(400, 50024, 'Cannot execute action on this channel type')
    if (!this.list(channel).some((message) => message.id === id)) return failure(404, 10008, 'Unknown Message')
    if (this.threads.has(id)) return failure(400, 160004, 'A thread has already been created for this message')
    if (typeof name !== 'string' || name === '' || [...name].length > 100) return invalid('name', 'Must be between 1 and 100 in length.')
    if (![60, 1440, 4320, 10080].includes(Number(auto_archive_duration))) return invalid('auto_archive_duration', 'Value is not a choice')
    this.threads.set(id, { name, parent: channel })
    this.#guilds.set(id, guild)
    const thread = { id, type: 11, guild_id: guild, parent_id: channel, name }
    this.#options.dispatch('THREAD_CREATE', { ...thread, newly_created: true })
    return { status: 201, body: thread }
  }

  /** Answers a request for the history, newest first. */
  history(channel: string, query: URLSearchParams): ProviderReply {
    const limit = Number(query.get('limit') ?? 50)
    if (!Number.isInteger(limit) || limit < 1 || limit > HISTORY_MAX)
      return invalid('limit', 'int value should be less than or equal to 100.')
    const [after, before] = [query.get('after'), query.get('before')]
    // "The `around`, `before`, and `after` parameters are mutually exclusive": https://docs.discord.com/developers/resources/message
    if (after !== null && before !== null) return invalid('before', 'Only one of around, before and after may be passed.')
    const all = this.list(channel)
    const earlier = before === null ? all : all.filter(({ id }) => BigInt(id) < BigInt(before))
    const page = after === null ? earlier.slice(-limit) : all.filter(({ id }) => BigInt(id) > BigInt(after)).slice(0, limit)
    return { status: 200, body: page.toReversed() }
  }

  /** Stores a message and dispatches it to the gateway, whose events hold more members than the history. */
  #add(message: DiscordMessage): DiscordMessage {
    const all = this.list(message.channel_id)
    all.push(message)
    if (all.length > MESSAGES_MAX) all.shift()
    const guild = this.guildOf(message.channel_id)
    const { components: _, ...shown } = message
    this.#options.dispatch('MESSAGE_CREATE', { ...shown, ...(guild !== undefined && { guild_id: guild, member: { roles: [] } }) })
    return message
  }

  #messageOf(channel: string, author: DiscordMessage['author'], content: string, replyTo?: string): DiscordMessage {
    const referenced = this.list(channel).find(({ id }) => id === replyTo)
    return {
      id: this.newId(),
      channel_id: channel,
      content,
      author,
      type: replyTo === undefined ? 0 : 19,
      timestamp: new Date(this.#options.nowMs()).toISOString(),
      components: [],
      attachments: [],
      // Users come as objects and roles as ids (https://discord.com/developers/docs/resources/message#message-object).
      mentions: Array.from(content.matchAll(/<@!?(\d+)>/g), ([, id]) => ({ id, username: `user-${id}` })),
      mention_roles: Array.from(content.matchAll(/<@&(\d+)>/g), ([, id]) => id),
      ...(replyTo !== undefined && {
        message_reference: { type: 0, channel_id: channel, message_id: replyTo },
        referenced_message: referenced ?? null,
      }),
    }
  }

  #keepFiles(list: readonly UploadedFile[]): DiscordMessage['attachments'] {
    return list.map(({ name, mime, bytes }) => {
      const id = this.newId()
      this.#files.set(`/attachments/${id}`, { bytes, mime: mime ?? 'application/octet-stream' })
      const url = `${this.#options.baseUrl()}/attachments/${id}`
      return { id, filename: name, ...(mime && { content_type: mime }), size: bytes.length, url }
    })
  }
}

/** Appends to a bounded list, dropping its oldest item. */
export function note<Item>(noted: Item[], item: Item): void {
  noted.push(item)
  if (noted.length > NOTED_MAX) noted.shift()
}

/** An error reply with the platform's error code. */
export const failure = (status: number, code: number, message: string): ProviderReply => ({ status, body: { message, code } })

/** The reply to a request with an invalid field. */
export const invalid = (field: string, message: string): ProviderReply => ({
  status: 400,
  body: { message: 'Invalid Form Body', code: 50035, errors: { [field]: { _errors: [{ code: 'BASE_TYPE_BAD', message }] } } },
})
