/** discord on loopback: its REST interface and gateway on one server, with conversations, threads and people who write. */
import { type FakeProvider, type ProviderReply, type ProviderRequest, startFakeProvider } from '../fake-provider.ts'
import { checkDiscordMessage, type DiscordMessageBody, readDiscordBody } from './discord-body.ts'
import { createDiscordGateway, type DiscordGatewayControls } from './discord-gateway.ts'

export interface DiscordFakeOptions {
  readonly token?: string
  /** Default 41,250, the platform's own interval. */
  readonly heartbeatMs?: number
  /** The intents the bot may request; default: all that the channel needs. */
  readonly intents?: number
  readonly port?: number
  /** The servers reported at the start of a session, in the shape of `GUILD_CREATE`; default: none. */
  readonly guilds?: readonly { readonly id: string; readonly [member: string]: unknown }[]
  /** The platform's clock in milliseconds since 1970; default: the real time. */
  nowMs?(): number
}

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

export interface DiscordSaid {
  readonly text: string
  /** Default: `DISCORD_CHANNEL`. */
  readonly channel?: string
  /** Default: `DISCORD_USER`. */
  readonly author?: string
  readonly isBot?: boolean
  readonly replyTo?: string
  readonly files?: readonly { readonly name: string; readonly mime?: string; readonly bytes: Uint8Array }[]
}

export interface DiscordFake extends FakeProvider, DiscordGatewayControls {
  /** For `api_url`. */
  readonly apiUrl: string
  readonly token: string
  readonly bot: string
  /** The messages of a conversation, oldest first. */
  messages(channel?: string): readonly DiscordMessage[]
  /** Every message of the bot, oldest first. */
  readonly sent: readonly DiscordMessage[]
  /** The conversations in which a message of the bot would have notified someone. */
  readonly pings: readonly string[]
  /** Threads by the id of the message they start from. */
  readonly threads: ReadonlyMap<string, { readonly name: string; readonly parent: string }>
  /** Ids of the button presses the bot acknowledged. */
  readonly acknowledged: readonly string[]
  readonly typing: readonly string[]
  /** Writes a message as a user and returns its id. */
  say(said: DiscordSaid): string
  /** Presses a button as a user and returns the id of the press. */
  press(pressed: { readonly message: string; readonly value: string; readonly user?: string }): string
  /** Takes away the bot's permissions in a conversation. */
  forbid(channel: string): void
  /** Replaces the token that requests must carry. */
  changeToken(token: string): void
}

export const DISCORD_BOT = '900000000000000001'
export const DISCORD_TOKEN = `${Buffer.from(DISCORD_BOT).toString('base64url')}.GabcdE.discord-bot-token-01`
export const DISCORD_GUILD = '300000000000000001'
/** A conversation on the server. */
export const DISCORD_CHANNEL = '200000000000000001'
/** Another conversation on that server. */
export const DISCORD_OTHER_CHANNEL = '200000000000000002'
/** A direct conversation with the bot. */
export const DISCORD_DIRECT = '200000000000000003'
/** A conversation on a server other than `DISCORD_GUILD`. */
export const DISCORD_ELSEWHERE = '200000000000000004'
export const DISCORD_USER = '400000000000000001'

const EPOCH_MS = 1_420_070_400_000
const GUILDS_AND_MESSAGES = 1 | 512 | 4096 | 32768
/** The messages kept for one conversation. */
const MESSAGES_MAX = 10_000
const NOTED_MAX = 100_000
const HISTORY_MAX = 100
const ROUTE =
  /^\/api\/v10\/(?:(?<gateway>gateway\/bot)|channels\/(?<channel>\d+)(?:\/(?:(?<typing>typing)|messages(?:\/(?<message>\d+)(?<threads>\/threads)?)?(?<messages>)))?|interactions\/(?<interaction>\d+)\/(?<secret>[^/]+)\/callback)$/

export async function startDiscordFake(options: DiscordFakeOptions = {}): Promise<DiscordFake> {
  const { nowMs = Date.now, heartbeatMs = 41_250, intents = GUILDS_AND_MESSAGES, guilds: servers = [] } = options
  let token = options.token ?? DISCORD_TOKEN
  const guilds = new Map<string, string | undefined>([
    [DISCORD_CHANNEL, DISCORD_GUILD],
    [DISCORD_OTHER_CHANNEL, DISCORD_GUILD],
    [DISCORD_DIRECT, undefined],
    [DISCORD_ELSEWHERE, '300000000000000002'],
  ])
  const conversations = new Map<string, DiscordMessage[]>()
  const threads = new Map<string, { name: string; parent: string }>()
  const files = new Map<string, { bytes: Uint8Array; mime: string }>()
  const interactions = new Map<string, string>()
  const nonces = new Map<string, DiscordMessage>()
  const forbidden = new Set<string>()
  const sent: DiscordMessage[] = []
  const pings: string[] = []
  const acknowledged: string[] = []
  const typing: string[] = []
  let made = 0

  const bot = { id: DISCORD_BOT, username: 'sluice', bot: true }
  const gateway = createDiscordGateway({ token: () => token, user: bot, heartbeatMs, intents, guilds: servers })
  const newId = () => String((BigInt(Math.floor(nowMs()) - EPOCH_MS) << 22n) + BigInt(++made % 4_194_304))
  const messages = (channel: string): DiscordMessage[] => {
    const known = conversations.get(channel) ?? []
    conversations.set(channel, known)
    return known
  }
  const note = <T>(noted: T[], what: T): void => {
    noted.push(what)
    if (noted.length > NOTED_MAX) noted.shift()
  }

  /** Stores a message and dispatches it to the gateway, whose events hold more members than the history. */
  const add = (message: DiscordMessage): DiscordMessage => {
    const all = messages(message.channel_id)
    all.push(message)
    if (all.length > MESSAGES_MAX) all.shift()
    const guild = guilds.get(message.channel_id)
    const { components: _, ...shown } = message
    gateway.dispatch('MESSAGE_CREATE', { ...shown, ...(guild !== undefined && { guild_id: guild, member: { roles: [] } }) })
    return message
  }

  const messageOf = (channel: string, author: DiscordMessage['author'], content: string, replyTo?: string): DiscordMessage => {
    const referenced = messages(channel).find(({ id }) => id === replyTo)
    return {
      id: newId(),
      channel_id: channel,
      content,
      author,
      type: replyTo === undefined ? 0 : 19,
      timestamp: new Date(nowMs()).toISOString(),
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

  const keepFiles = (list: readonly { name: string; mime?: string; bytes: Uint8Array }[], baseUrl: string): DiscordMessage['attachments'] =>
    list.map(({ name, mime, bytes }) => {
      const id = newId()
      files.set(`/attachments/${id}`, { bytes, mime: mime ?? 'application/octet-stream' })
      return { id, filename: name, ...(mime && { content_type: mime }), size: bytes.length, url: `${baseUrl}/attachments/${id}` }
    })

  const post = (channel: string, body: DiscordMessageBody): ProviderReply => {
    const wrong = checkDiscordMessage(body)
    if (wrong) return wrong
    const { replyTo, mustExist, nonce, isNonceEnforced, content, components } = body
    const isReferenceGood = replyTo !== undefined && messages(channel).some(({ id }) => id === replyTo)
    if (replyTo !== undefined && mustExist && !isReferenceGood) return invalid('message_reference', 'Unknown message')
    const repeated = isNonceEnforced && nonce !== undefined ? nonces.get(`${channel} ${nonce}`) : undefined
    if (repeated) return { status: 200, body: repeated }
    const message: DiscordMessage = {
      ...messageOf(channel, bot, content, isReferenceGood ? replyTo : undefined),
      components,
      attachments: keepFiles(body.files, provider.url),
    }
    if (nonce !== undefined) nonces.set(`${channel} ${nonce}`, message)
    if (body.pings(content)) note(pings, channel)
    note(sent, message)
    return { status: 200, body: add(message) }
  }

  const edit = (channel: string, id: string, body: DiscordMessageBody): ProviderReply => {
    const all = messages(channel)
    const at = all.findIndex((message) => message.id === id)
    const message = all[at]
    if (!message) return failure(404, 10008, 'Unknown Message')
    if (message.author.id !== bot.id) return failure(403, 50005, 'Cannot edit a message authored by another user')
    const wrong = checkDiscordMessage({ ...body, files: message.attachments.length > 0 ? [{ name: '', bytes: new Uint8Array() }] : [] })
    if (wrong) return wrong
    const edited = { ...message, content: body.content, components: body.components, edited_timestamp: new Date(nowMs()).toISOString() }
    all[at] = edited
    const sentAt = sent.findIndex((known) => known.id === id)
    if (sentAt >= 0) sent[sentAt] = edited
    return { status: 200, body: edited }
  }

  const openThread = (channel: string, id: string, json: unknown): ProviderReply => {
    const { name, auto_archive_duration } = (json ?? {}) as { name?: unknown; auto_archive_duration?: unknown }
    if (guilds.get(channel) === undefined || threads.has(channel)) return failure(400, 50024, 'Cannot execute action on this channel type')
    if (!messages(channel).some((message) => message.id === id)) return failure(404, 10008, 'Unknown Message')
    if (threads.has(id)) return failure(400, 160004, 'A thread has already been created for this message')
    if (typeof name !== 'string' || name === '' || [...name].length > 100) return invalid('name', 'Must be between 1 and 100 in length.')
    if (![60, 1440, 4320, 10080].includes(Number(auto_archive_duration))) return invalid('auto_archive_duration', 'Value is not a choice')
    threads.set(id, { name, parent: channel })
    guilds.set(id, guilds.get(channel))
    const thread = { id, type: 11, guild_id: guilds.get(channel), parent_id: channel, name }
    gateway.dispatch('THREAD_CREATE', { ...thread, newly_created: true })
    return { status: 201, body: thread }
  }

  const history = (channel: string, query: URLSearchParams): ProviderReply => {
    const limit = Number(query.get('limit') ?? 50)
    if (!Number.isInteger(limit) || limit < 1 || limit > HISTORY_MAX)
      return invalid('limit', 'int value should be less than or equal to 100.')
    const after = query.get('after')
    const all = messages(channel)
    const page = after === null ? all.slice(-limit) : all.filter(({ id }) => BigInt(id) > BigInt(after)).slice(0, limit)
    return { status: 200, body: page.toReversed() }
  }

  const acknowledge = (id: string, secret: string, json: unknown): ProviderReply => {
    if (interactions.get(id) !== secret) return failure(404, 10062, 'Unknown interaction')
    if ((json as { type?: unknown } | undefined)?.type !== 6) return invalid('type', 'Value is not a choice')
    if (acknowledged.includes(id)) return failure(400, 40060, 'Interaction has already been acknowledged.')
    note(acknowledged, id)
    return { status: 204 }
  }

  const answer = async (request: ProviderRequest): Promise<ProviderReply> => {
    const { method, path, headers, query, json } = request
    const file = files.get(path)
    if (file && method === 'GET') return { status: 200, headers: { 'content-type': file.mime }, body: file.bytes }
    const route = ROUTE.exec(path)?.groups
    if (!route) return failure(404, 0, '404: Not Found')
    if (!/^DiscordBot \(https?:\/\/\S+, \S+\)/.test(headers.get('user-agent') ?? '')) return failure(403, 40333, 'internal network error')
    const { channel = '', message, interaction, secret } = route
    if (interaction !== undefined)
      return method === 'POST'
        ? acknowledge(interaction, decodeURIComponent(secret ?? ''), json)
        : failure(405, 0, '405: Method Not Allowed')
    if (headers.get('authorization') !== `Bot ${token}`) return failure(401, 0, '401: Unauthorized')
    if (route.gateway !== undefined) return { status: 200, body: gatewayInfo() }
    if (!guilds.has(channel)) return failure(404, 10003, 'Unknown Channel')
    if (forbidden.has(channel))
      return method === 'POST' ? failure(403, 50013, 'Missing Permissions') : failure(403, 50001, 'Missing Access')
    const isAbout = `${method} ${route.typing ?? (route.threads !== undefined ? 'threads' : message !== undefined ? 'message' : route.messages !== undefined ? 'messages' : 'channel')}`
    if (isAbout === 'GET channel') return { status: 200, body: shownChannel(channel) }
    if (isAbout === 'GET messages') return history(channel, query)
    if (isAbout === 'POST messages') return post(channel, await readDiscordBody(request))
    if (isAbout === 'PATCH message') return edit(channel, message ?? '', await readDiscordBody(request))
    if (isAbout === 'POST threads') return openThread(channel, message ?? '', json)
    if (isAbout !== 'POST typing') return failure(405, 0, '405: Method Not Allowed')
    note(typing, channel)
    return { status: 204 }
  }

  const gatewayInfo = () => ({
    url: provider.url.replace('http:', 'ws:'),
    shards: 1,
    session_start_limit: { total: 1000, remaining: gateway.sessionsLeft, reset_after: 14_400_000, max_concurrency: 1 },
  })
  const shownChannel = (id: string) => {
    const guild = guilds.get(id)
    const parent = threads.get(id)?.parent
    return {
      id,
      type: guild === undefined ? 1 : parent === undefined ? 0 : 11,
      ...(guild && { guild_id: guild }),
      ...(parent && { parent_id: parent }),
    }
  }

  const provider = await startFakeProvider(answer, { port: options.port ?? 0, upgrade: gateway.upgrade })
  return {
    ...gateway,
    get connected() {
      return gateway.connected
    },
    ...provider,
    apiUrl: `${provider.url}/api`,
    get token() {
      return token
    },
    bot: DISCORD_BOT,
    messages: (channel = DISCORD_CHANNEL) => messages(channel),
    sent,
    pings,
    threads,
    acknowledged,
    typing,
    say({ text, channel = DISCORD_CHANNEL, author = DISCORD_USER, isBot = false, replyTo, files: given = [] }) {
      const by = { id: author, username: `user-${author}`, bot: isBot }
      return add({ ...messageOf(channel, by, text, replyTo), attachments: keepFiles(given, provider.url) }).id
    },
    press({ message, value, user = DISCORD_USER }) {
      const pressed = sent.find(({ id }) => id === message)
      if (!pressed) throw new Error(`the bot has sent no message ${message}`)
      const id = newId()
      const secret = `interaction-token-${id}`
      interactions.set(id, secret)
      const guild = guilds.get(pressed.channel_id)
      const who = { id: user, username: `user-${user}` }
      gateway.dispatch('INTERACTION_CREATE', {
        id,
        application_id: DISCORD_BOT,
        type: 3,
        token: secret,
        version: 1,
        channel_id: pressed.channel_id,
        data: { component_type: 2, custom_id: value },
        message: pressed,
        ...(guild === undefined ? { user: who } : { guild_id: guild, member: { user: who, roles: [] } }),
      })
      return id
    },
    forbid: (channel) => void forbidden.add(channel),
    changeToken(next) {
      token = next
    },
    async close() {
      gateway.close()
      await provider.close()
    },
  }
}

const failure = (status: number, code: number, message: string): ProviderReply => ({ status, body: { message, code } })

const invalid = (field: string, message: string): ProviderReply => ({
  status: 400,
  body: { message: 'Invalid Form Body', code: 50035, errors: { [field]: { _errors: [{ code: 'BASE_TYPE_BAD', message }] } } },
})

if (import.meta.main) {
  const { url, token } = await startDiscordFake()
  console.log(`${url}/api`, token)
}
