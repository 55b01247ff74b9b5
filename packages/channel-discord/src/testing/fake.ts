/** discord on loopback: its REST interface and gateway on one server, with conversations, threads and people who write. */
import { type FakeProvider, type ProviderReply, type ProviderRequest, startFakeProvider } from '@sluice/testkit/fake-provider'
import { readDiscordBody } from './fake-body.ts'
import { DiscordConversations, type DiscordMessage, failure, invalid, note } from './fake-conversations.ts'
import { createDiscordGateway, type DiscordGatewayControls } from './fake-gateway.ts'

export type { DiscordMessage } from './fake-conversations.ts'

/** How the fake of discord starts. */
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

/** A message that a user writes. */
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

/** A running fake of discord. */
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
  /** Edits a message as a user. */
  edit(message: string, edited: Pick<DiscordSaid, 'text' | 'author' | 'channel'>): void
  /** Deletes a message. */
  remove(message: string, channel?: string): void
  /** Presses a button as a user and returns the id of the press. */
  press(pressed: { readonly message: string; readonly value: string; readonly user?: string }): string
  /** The commands of the app. */
  readonly menu: readonly object[]
  /** The messages by which commands were answered. */
  readonly answers: readonly object[]
  /** Uses a command of the menu as a person, and returns the id of the interaction. */
  command(used: { readonly name: string; readonly words?: string; readonly user?: string; readonly channel?: string }): string
  /** Takes away the bot's permissions in a conversation. */
  forbid(channel: string): void
  /** Replaces the token that requests must carry. */
  changeToken(token: string): void
}

/** The user id of the bot. */
export const DISCORD_BOT = '900000000000000001'
/** The application of the bot, whose id differs from the bot's for old applications. */
export const DISCORD_APPLICATION = '600000000000000001'
/** The default token; it starts with the bot's id, as real tokens do. */
export const DISCORD_TOKEN = `${Buffer.from(DISCORD_BOT).toString('base64url')}.GabcdE.discord-bot-token-01`
/** The server with the first two conversations. */
export const DISCORD_GUILD = '300000000000000001'
/** A conversation on the server. */
export const DISCORD_CHANNEL = '200000000000000001'
/** Another conversation on that server. */
export const DISCORD_OTHER_CHANNEL = '200000000000000002'
/** A direct conversation with the bot. */
export const DISCORD_DIRECT = '200000000000000003'
/** A conversation on a server other than `DISCORD_GUILD`. */
export const DISCORD_ELSEWHERE = '200000000000000004'
/** The default author of messages. */
export const DISCORD_USER = '400000000000000001'

/** The server of each conversation; a direct conversation has none. */
const GUILD_OF = new Map<string, string | undefined>([
  [DISCORD_CHANNEL, DISCORD_GUILD],
  [DISCORD_OTHER_CHANNEL, DISCORD_GUILD],
  [DISCORD_DIRECT, undefined],
  [DISCORD_ELSEWHERE, '300000000000000002'],
])
const GUILDS_AND_MESSAGES = 1 | 512 | 4096 | 32768
const ROUTE =
  /^\/api\/v10\/(?:(?<gateway>gateway\/bot)|applications\/(?<application>@me|\d+\/commands)|channels\/(?<channel>\d+)(?:\/(?:(?<typing>typing)|messages(?:\/(?<message>\d+)(?<threads>\/threads)?)?(?<messages>)))?|interactions\/(?<interaction>\d+)\/(?<secret>[^/]+)\/callback)$/

/** Starts the fake; call `close` to end it. */
export async function startDiscordFake(options: DiscordFakeOptions = {}): Promise<DiscordFake> {
  const { nowMs = Date.now, heartbeatMs = 41_250, intents = GUILDS_AND_MESSAGES, guilds = [] } = options
  let token = options.token ?? DISCORD_TOKEN
  const interactions = new Map<string, string>()
  const commandIds = new Set<string>()
  const answers: object[] = []
  let menu: readonly object[] = [{ id: '700000000000000001', type: 2, name: 'Report', description: '' }]
  const forbidden = new Set<string>()
  const acknowledged: string[] = []
  const typing: string[] = []

  const bot = { id: DISCORD_BOT, username: 'sluice', bot: true }
  const gateway = createDiscordGateway({ token: () => token, user: bot, heartbeatMs, intents, guilds })
  const conversations = new DiscordConversations({
    bot,
    guilds: GUILD_OF,
    nowMs,
    baseUrl: () => provider.url,
    dispatch: (type, data) => gateway.dispatch(type, data),
  })

  const acknowledge = (id: string, secret: string, json: unknown): ProviderReply => {
    if (interactions.get(id) !== secret) return failure(404, 10062, 'Unknown interaction')
    const { type, data } = (json ?? {}) as { type?: unknown; data?: { content?: unknown; flags?: unknown } }
    if (type !== (commandIds.has(id) ? 4 : 6)) return invalid('type', 'Value is not a choice')
    if (commandIds.has(id) && (typeof data?.content !== 'string' || data.content === ''))
      return invalid('data.content', 'Cannot send an empty message')
    if (commandIds.has(id)) answers.push(data ?? {})
    if (acknowledged.includes(id)) return failure(400, 40060, 'Interaction has already been acknowledged.')
    note(acknowledged, id)
    return { status: 204 }
  }
  const gatewayInfo = () => ({
    url: provider.url.replace('http:', 'ws:'),
    shards: 1,
    session_start_limit: { total: 1000, remaining: gateway.sessionsLeft, reset_after: 14_400_000, max_concurrency: 1 },
  })

  const answer = async (request: ProviderRequest): Promise<ProviderReply> => {
    const { method, path, headers, json } = request
    const file = conversations.fileAt(path)
    if (file && method === 'GET') return { status: 200, headers: { 'content-type': file.mime }, body: file.bytes }
    const route = ROUTE.exec(path)?.groups
    if (!route) return failure(404, 0, '404: Not Found')
    if (!/^DiscordBot \(https?:\/\/\S+, \S+\)/.test(headers.get('user-agent') ?? '')) return failure(403, 40333, 'internal network error')
    const { channel = '', interaction, secret } = route
    if (interaction !== undefined)
      return method === 'POST'
        ? acknowledge(interaction, decodeURIComponent(secret ?? ''), json)
        : failure(405, 0, '405: Method Not Allowed')
    if (headers.get('authorization') !== `Bot ${token}`) return failure(401, 0, '401: Unauthorized')
    if (route.application === '@me') return { status: 200, body: { id: DISCORD_APPLICATION, name: 'Sluice' } }
    if (route.application !== undefined) {
      if (route.application !== `${DISCORD_APPLICATION}/commands`)
        return failure(403, 20012, 'You are not authorized to perform this action on this application')
      if (method === 'GET') return { status: 200, body: menu }
      const wrong = method === 'PUT' && Array.isArray(json) ? json.find((command) => !isCommand(command)) : json
      if (wrong !== undefined) return invalid('name', 'Command name is invalid')
      menu = (json as object[]).map((command, at) => ({ id: String(700_000_000_000_000_010n + BigInt(at)), ...command }))
      return { status: 200, body: menu }
    }
    if (route.gateway !== undefined) return { status: 200, body: gatewayInfo() }
    if (!conversations.has(channel)) return failure(404, 10003, 'Unknown Channel')
    if (forbidden.has(channel))
      return method === 'POST' ? failure(403, 50013, 'Missing Permissions') : failure(403, 50001, 'Missing Access')
    return answerChannel(channel, route, request)
  }

  const answerChannel = async (channel: string, route: Record<string, string | undefined>, request: ProviderRequest) => {
    const { message = '' } = route
    switch (`${request.method} ${resourceOf(route)}`) {
      case 'GET channel':
        return { status: 200, body: conversations.show(channel) }
      case 'GET messages':
        return conversations.history(channel, request.query)
      case 'POST messages':
        return conversations.post(channel, await readDiscordBody(request))
      case 'PATCH message':
        return conversations.edit(channel, message, await readDiscordBody(request))
      case 'POST threads':
        return conversations.openThread(channel, message, request.json)
      case 'POST typing':
        note(typing, channel)
        return { status: 204 }
      default:
        return failure(405, 0, '405: Method Not Allowed')
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
    messages: (channel = DISCORD_CHANNEL) => conversations.list(channel),
    sent: conversations.sent,
    pings: conversations.pings,
    threads: conversations.threads,
    acknowledged,
    typing,
    say({ text, channel = DISCORD_CHANNEL, author = DISCORD_USER, isBot = false, replyTo, files = [] }) {
      return conversations.say(channel, { id: author, username: `user-${author}`, bot: isBot }, text, replyTo, files)
    },
    edit: (message, { text, author = DISCORD_USER, channel = DISCORD_CHANNEL }) =>
      conversations.reportEdit(channel, message, { id: author, username: `user-${author}`, bot: false }, text),
    remove: (message, channel = DISCORD_CHANNEL) => conversations.remove(channel, message),
    press({ message, value, user = DISCORD_USER }) {
      const pressed = conversations.sent.find(({ id }) => id === message)
      if (!pressed) throw new Error(`the bot has sent no message ${message}`)
      const id = conversations.newId()
      interactions.set(id, `interaction-token-${id}`)
      gateway.dispatch('INTERACTION_CREATE', interactionOf(id, { pressed, value, user, guild: conversations.guildOf(pressed.channel_id) }))
      return id
    },
    get menu() {
      return menu
    },
    answers,
    command({ name, words, user = DISCORD_USER, channel = DISCORD_CHANNEL }) {
      const id = conversations.newId()
      interactions.set(id, `interaction-token-${id}`)
      commandIds.add(id)
      const guild = conversations.guildOf(channel)
      const who = { id: user, username: `user-${user}` }
      const options = words === undefined ? {} : { options: [{ name: 'words', type: 3, value: words }] }
      gateway.dispatch('INTERACTION_CREATE', {
        ...{ id, application_id: DISCORD_APPLICATION, type: 2, token: `interaction-token-${id}`, version: 1, channel_id: channel },
        data: { id: '700000000000000011', name, type: 1, ...options },
        ...(guild === undefined ? { user: who } : { guild_id: guild, member: { user: who, nick: 'Ada', roles: [] } }),
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

/** The resource below a channel that a path addresses. */
function resourceOf({ typing, threads, message, messages }: Readonly<Record<string, string | undefined>>): string {
  if (typing !== undefined) return typing
  if (threads !== undefined) return 'threads'
  if (message !== undefined) return 'message'
  return messages !== undefined ? 'messages' : 'channel'
}

/** The limits of https://docs.discord.com/developers/interactions/application-commands#application-command-object */
function isCommand(value: unknown): boolean {
  const {
    type = 1,
    name = '',
    description = '',
    options = [],
  } = value as { type?: number; name?: string; description?: string; options?: unknown[] }
  if (type !== 1) return name.length > 0 && name.length <= 32 && description === ''
  return /^[-_'\p{Ll}\p{Lo}\p{N}]{1,32}$/u.test(name) && description.length > 0 && description.length <= 100 && options.length <= 25
}

interface PressedButton {
  readonly pressed: DiscordMessage
  readonly value: string
  readonly user: string
  readonly guild: string | undefined
}

/** The event of a button press. */
function interactionOf(id: string, { pressed, value, user, guild }: PressedButton): object {
  const who = { id: user, username: `user-${user}` }
  return {
    id,
    application_id: DISCORD_BOT,
    type: 3,
    token: `interaction-token-${id}`,
    version: 1,
    channel_id: pressed.channel_id,
    data: { component_type: 2, custom_id: value },
    message: pressed,
    ...(guild === undefined ? { user: who } : { guild_id: guild, member: { user: who, roles: [] } }),
  }
}

if (import.meta.main) {
  const { url, token } = await startDiscordFake()
  console.log(`${url}/api`, token)
}
