/** The server of roomchat on loopback: it accepts messages for its rooms, signs user messages and refuses what the real server refuses. */
import { randomBytes } from 'node:crypto'
import { equalTexts, hmacSha256 } from '@sluice/sdk'
import { type FakeProvider, type ProviderReply, type ProviderRequest, startFakeProvider } from '@sluice/testkit/fake-provider'

/** The secrets that the bot and the server share. */
export interface RoomchatCredentials {
  /** The secret shared with the bot when it was installed. */
  readonly secret: string
  /** The bearer token of the chat interface. */
  readonly appToken: string
}

/** How the fake of roomchat starts. */
export interface RoomchatFakeOptions extends Partial<RoomchatCredentials> {
  /** The tokens of the rooms; the bot is enabled in each. */
  readonly rooms?: readonly string[]
  readonly port?: number
}

/** An accepted message; a message sent twice is listed twice. */
export interface RoomchatSent {
  readonly id: number
  readonly room: string
  readonly by: 'bot' | 'user'
  readonly text: string
  /** The id of the quoted message. */
  readonly replyTo?: number
  readonly referenceId: string
  readonly silent: boolean
}

/** A running fake of roomchat. */
export interface RoomchatFake extends FakeProvider, Readonly<RoomchatCredentials> {
  /** The last `SENT_MAX` accepted messages. */
  readonly sent: readonly RoomchatSent[]
  /** The reactions of the bot. */
  readonly reactions: readonly { readonly room: string; readonly message: number; readonly reaction: string }[]
  /** Writes a message as a user and returns the request the server posts to the bot. */
  write(written: { readonly text: string; readonly actor?: string; readonly room?: string }): {
    readonly headers: Readonly<Record<string, string>>
    readonly body: string
    readonly id: number
  }
  /** Deletes a message, so it cannot be quoted any more. */
  remove(id: number): void
  /** Replaces the given credentials; the old ones become invalid. */
  change(credentials: Partial<RoomchatCredentials>): void
}

/** The default webhook secret. */
export const ROOMCHAT_SECRET = 'roomchat-webhook-secret-01'
/** The default token of the chat interface. */
export const ROOMCHAT_APP_TOKEN = 'roomchat-app-token-01'

const SENT_MAX = 100_000
const TEXT_CHARS_MAX = 32_000
const REFERENCE_CHARS_MAX = 64
const RANDOM_CHARS_MIN = 32
/** The wrong signatures after which the server throttles the sender. */
const WRONG_SIGNATURES_MAX = 10
const PATH = /^\/ocs\/v2\.php\/apps\/spreed\/api\/v1\/(?:bot\/(?<bot>[^/]+)\/(?:message|reaction\/(?<reacted>[^/]+))|chat\/(?<chat>[^/]+))$/

/** Starts the fake; call `close` to end it. */
export async function startRoomchatFake(options: RoomchatFakeOptions = {}): Promise<RoomchatFake> {
  const rooms = new Set(options.rooms ?? ['ops4room'])
  const sent: RoomchatSent[] = []
  const reactions: RoomchatFake['reactions'][number][] = []
  /** The room of each message that can be quoted, by message id. */
  const messages = new Map<number, string>()
  let { secret = ROOMCHAT_SECRET, appToken = ROOMCHAT_APP_TOKEN } = options
  let wrongSignatures = 0
  let lastId = 4710

  const answer = (request: ProviderRequest): ProviderReply => {
    const { bot, chat, reacted } = PATH.exec(request.path)?.groups ?? {}
    if (request.method !== 'POST' || (bot ?? chat) === undefined) return ocs(404, { message: 'Invalid query' })
    if (request.headers.get('ocs-apirequest') !== 'true') return { status: 412, body: { message: 'CSRF check failed' } }
    const params = /application\/json/.test(request.headers.get('content-type') ?? '') ? membersOf(request.json) : {}
    const signed = reacted === undefined ? params.message : params.reaction
    const text = typeof signed === 'string' ? signed : ''
    if (bot !== undefined && reacted !== undefined) return fromBot(request, bot, text) ?? takeReaction(bot, Number(reacted), text)
    if (bot !== undefined) return fromBot(request, bot, text) ?? take('bot', bot, { ...params, text })
    return fromUser(request, chat ?? '') ?? take('user', chat ?? '', { ...params, text })
  }

  /** Returns the refusal of a bot's request, if any. The server makes the same checks in the same order. */
  const fromBot = ({ headers }: ProviderRequest, room: string, text: string): ProviderReply | undefined => {
    const random = headers.get('x-nextcloud-talk-bot-random') ?? ''
    const signature = headers.get('x-nextcloud-talk-bot-signature') ?? ''
    if (text.trim() === '' || random.length < RANDOM_CHARS_MIN || signature === '') return ocs(400)
    if (wrongSignatures >= WRONG_SIGNATURES_MAX) return ocs(429, { message: 'Reached maximum delay' })
    if (rooms.has(room) && equalTexts(signature.toLowerCase(), sign(random, text))) return undefined
    wrongSignatures += 1
    return ocs(401)
  }

  const fromUser = ({ headers }: ProviderRequest, room: string): ProviderReply | undefined => {
    if (headers.get('authorization') !== `Bearer ${appToken}`) return ocs(401, { message: 'Current user is not logged in' })
    return rooms.has(room) ? undefined : ocs(404)
  }

  const take = (by: RoomchatSent['by'], room: string, params: Params & { readonly text: string }): ProviderReply => {
    const { text, referenceId = '', replyTo = 0, silent = false } = params
    if (text.trim() === '') return ocs(400, { data: { error: 'message' } })
    if ([...text].length > TEXT_CHARS_MAX) return ocs(413, { data: { error: 'message' } })
    if (replyTo !== 0 && messages.get(Number(replyTo)) !== room) return ocs(400, { data: { error: 'reply-to' } })
    const message: RoomchatSent = {
      id: ++lastId,
      room,
      by,
      text,
      ...(replyTo !== 0 && { replyTo: Number(replyTo) }),
      referenceId: String(referenceId).slice(0, REFERENCE_CHARS_MAX),
      silent: silent === true,
    }
    messages.set(message.id, room)
    sent.push(message)
    if (sent.length > SENT_MAX) sent.shift()
    const shown = { id: message.id, token: room, message: text, messageType: 'comment', referenceId: message.referenceId }
    return ocs(201, { data: by === 'bot' ? null : shown })
  }

  /** The server takes one emoji, and reacts to messages of the room only. */
  const takeReaction = (room: string, message: number, reaction: string): ProviderReply => {
    if (messages.get(message) !== room) return ocs(404)
    if (!/^\p{RGI_Emoji}$/v.test(reaction)) return ocs(400)
    if (reactions.some((known) => known.message === message && known.reaction === reaction)) return ocs(200)
    reactions.push({ room, message, reaction })
    return ocs(201)
  }

  const sign = (random: string, signed: string): string => hmacSha256(secret, random, signed).toString('hex')

  const provider = await startFakeProvider(answer, { port: options.port ?? 0 })
  return {
    ...provider,
    get secret() {
      return secret
    },
    get appToken() {
      return appToken
    },
    sent,
    reactions,
    write({ text, actor = 'users/ada', room = 'ops4room' }) {
      const id = ++lastId
      messages.set(id, room)
      const body = eventOf({ id, text, actor, room })
      const random = randomBytes(48).toString('base64')
      const headers = {
        'content-type': 'application/json',
        'x-nextcloud-talk-random': random,
        'x-nextcloud-talk-signature': sign(random, body),
        'x-nextcloud-talk-backend': `${provider.url}/`,
        'ocs-apirequest': 'true',
      }
      return { id, headers, body }
    },
    remove: (id) => void messages.delete(id),
    change(credentials) {
      secret = credentials.secret ?? secret
      appToken = credentials.appToken ?? appToken
    },
  }
}

type Params = Readonly<Record<string, unknown>>

const membersOf = (json: unknown): Params => (typeof json === 'object' && json !== null ? (json as Params) : {})

/** Wraps an answer in the envelope that the server puts around each. */
function ocs(status: number, { message = '', data = null }: { readonly message?: string; readonly data?: unknown } = {}): ProviderReply {
  const meta = { status: status < 400 ? 'ok' : 'failure', statuscode: status, message }
  return { status, body: { ocs: { meta, data } } }
}

function eventOf({ id, text, actor, room }: { id: number; text: string; actor: string; room: string }): string {
  return JSON.stringify({
    type: 'Create',
    actor: { type: 'Person', id: actor, name: actor.split('/').at(-1), talkParticipantType: '3' },
    object: {
      type: 'Note',
      id: String(id),
      name: 'message',
      content: JSON.stringify({ message: text, parameters: [] }),
      mediaType: 'text/markdown',
    },
    target: { type: 'Collection', id: room, name: room },
  })
}

if (import.meta.main) console.log((await startRoomchatFake()).url)
