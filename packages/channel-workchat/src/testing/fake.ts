/**
 * Lark or Feishu on loopback, with one app and its bot: tokens, the API of messages, and long connections. Tests write, edit, recall
 * and press buttons as people. Run it by hand to try a set-up: `node src/testing/fake.ts`.
 */
import { randomUUID } from 'node:crypto'
import { type FakeProvider, type ProviderReply, type ProviderRequest, startFakeProvider } from '@sluice/testkit/fake-provider'
import { answerApi, type WorkchatState } from './fake-api.ts'
import { WorkchatChats, type WorkchatMessage } from './fake-chats.ts'
import { createWorkchatSocket, type FakeClientConfig, type WorkchatSocket } from './fake-socket.ts'

export interface WorkchatFakeOptions {
  readonly port?: number
  readonly appId?: string
  readonly appSecret?: string
  readonly verificationToken?: string
  /** The types of the conversations by id: `p2p`, `group` or `topic_group`. */
  readonly chats?: Readonly<Record<string, string>>
  readonly clientConfig?: Partial<FakeClientConfig>
  /** How long the platform waits for an acknowledgement (3 s), and its pauses before it sends an event again. */
  readonly ackMs?: number
  readonly againMs?: readonly number[]
  /** The largest part of an event. */
  readonly partBytes?: number
  /** How long a token lasts. */
  readonly expireSecs?: number
  nowMs?(): number
}

export interface Said {
  readonly text?: string
  readonly user?: string
  readonly chat?: string
  /** The message to answer. */
  readonly replyTo?: string
  readonly inThread?: boolean
  /** Names of `MENTIONS`; the text has their keys. */
  readonly mentions?: readonly { readonly key: string; readonly id: string; readonly name: string }[]
  /** Another type than text, with its content. */
  readonly type?: string
  readonly content?: object | string
  /** The message in which this one is passed on, with others. It has no event. */
  readonly passedOnIn?: string
  /** Sends no event, as if all attempts to deliver it had failed. */
  readonly isLost?: boolean
}

export interface WorkchatFake extends FakeProvider {
  readonly socket: WorkchatSocket
  readonly reactions: readonly { readonly message: string; readonly emoji: string }[]
  readonly files: WorkchatState['files']
  readonly verificationToken: string
  /** How often a token was granted. */
  readonly tokens: number
  /** Writes a message as a person, and returns its id. */
  say(said: Said): string
  /** The event of a message that was written, for webhooks. */
  eventOf(message: string): object
  edit(message: string, text: string): object
  recall(message: string): object
  /** Presses a button as a person. Throws if the message has no such button. */
  press(pressed: { readonly message: string; readonly value: string; readonly user?: string }): object
  /** The messages of the bot, or all messages of a conversation. */
  sent(chat?: string): readonly WorkchatMessage[]
  messages(chat?: string): readonly WorkchatMessage[]
  /** Makes all tokens invalid; `forGood` also the secret. */
  revoke(forGood?: boolean): void
  setClientConfig(config: Partial<FakeClientConfig>): void
}

export const WORKCHAT_APP_ID = 'cli_a1b2c3d4e5f60718'
export const WORKCHAT_APP_SECRET = 'workchat-app-secret-01'
export const WORKCHAT_BOT = 'ou_bot'
export const WORKCHAT_VERIFICATION_TOKEN = 'workchat-verification-token-01'
export const WORKCHAT_ENCRYPT_KEY = 'encrypt-key-01'

const TENANT = 'tenant-1'
const TOKEN_SECS = 7200
/** "If the push fails, it is pushed again after 15 seconds, 5 minutes, 1 hour and 6 hours." */
const AGAIN_MS = [15_000, 300_000, 3_600_000, 21_600_000]
const CLIENT_CONFIG: FakeClientConfig = { PingInterval: 120, ReconnectCount: -1, ReconnectInterval: 120, ReconnectNonce: 30 }
const FIRST_MS = Date.UTC(2026, 0, 1)

export async function startWorkchatFake(options: WorkchatFakeOptions = {}): Promise<WorkchatFake> {
  const { appId = WORKCHAT_APP_ID, verificationToken = WORKCHAT_VERIFICATION_TOKEN, expireSecs = TOKEN_SECS } = options
  const { ackMs = 3000, againMs = AGAIN_MS, partBytes = 1_000_000, nowMs = () => FIRST_MS } = options
  let appSecret = options.appSecret ?? WORKCHAT_APP_SECRET
  let clientConfig = { ...CLIENT_CONFIG, ...options.clientConfig }
  let granted = 0
  const chats = new WorkchatChats(options.chats ?? { oc_ada: 'p2p', oc_bob: 'p2p', oc_team: 'group' }, nowMs)
  const state: WorkchatState = {
    appId,
    chats,
    botOpenId: WORKCHAT_BOT,
    reactions: [],
    files: new Map(),
    uuids: new Map(),
    tokens: new Set(),
    nowMs,
  }
  const socket = createWorkchatSocket({ config: () => clientConfig, ackMs, againMs, partBytes })

  const envelope = (type: string, event: object): object => ({
    schema: '2.0',
    header: {
      event_id: randomUUID(),
      event_type: type,
      create_time: String(Math.floor(nowMs())),
      token: verificationToken,
      app_id: appId,
      tenant_key: TENANT,
    },
    event,
  })
  const idsOf = (user: string) => ({ open_id: user, union_id: user.replace('ou_', 'on_'), user_id: user.replace('ou_', 'u_') })
  const found = (id: string): WorkchatMessage => {
    const message = chats.find(id)
    if (!message) throw new Error(`there is no message ${id}`)
    return message
  }
  const messageEvent = (type: string, { sender, body, msg_type, mentions, deleted: _, updated: __, ...rest }: WorkchatMessage): object =>
    envelope(type, {
      sender: { sender_id: idsOf(sender.id), sender_type: sender.sender_type, tenant_key: TENANT },
      message: {
        ...rest,
        chat_type: chats.typeOf(rest.chat_id) === 'p2p' ? 'p2p' : 'group',
        message_type: msg_type,
        content: body.content,
        ...(mentions && { mentions: mentions.map(({ key, id, name }) => ({ key, id: idsOf(id), name, tenant_key: TENANT })) }),
      },
    })
  const emit = (event: object): object => {
    socket.emit(event)
    return event
  }

  const grant = ({ json }: ProviderRequest): ProviderReply => {
    const { app_id, app_secret } = (json ?? {}) as Record<string, unknown>
    if (typeof app_id !== 'string' || typeof app_secret !== 'string') return { status: 200, body: { code: 10003, msg: 'invalid param' } }
    if (app_id !== appId || app_secret !== appSecret) return { status: 200, body: { code: 10014, msg: 'app secret invalid' } }
    const token = `t-${randomUUID()}`
    granted += 1
    state.tokens.add(token)
    return { status: 200, body: { code: 0, msg: 'ok', tenant_access_token: token, expire: expireSecs } }
  }
  const endpoint = ({ json }: ProviderRequest): ProviderReply => {
    const { AppID, AppSecret } = (json ?? {}) as Record<string, unknown>
    if (AppID !== appId || AppSecret !== appSecret) return { status: 200, body: { code: 514, msg: 'app_id or app_secret is invalid' } }
    const URL = provider.url.replace('http:', 'ws:') + socket.ticket()
    return { status: 200, body: { code: 0, msg: '', data: { URL, ClientConfig: clientConfig } } }
  }
  const provider: FakeProvider = await startFakeProvider(
    async (request) => {
      const { method, path } = request
      if (method === 'POST' && path === '/open-apis/auth/v3/tenant_access_token/internal') return grant(request)
      if (method === 'POST' && path === '/callback/ws/endpoint') return endpoint(request)
      const answer = path.startsWith('/open-apis') ? await answerApi(state, path.slice('/open-apis'.length), request) : undefined
      return answer ?? { status: 404, headers: { 'content-type': 'text/plain' }, body: '404 page not found' }
    },
    { upgrade: socket.upgrade, ...(options.port !== undefined && { port: options.port }) },
  )

  return {
    ...provider,
    socket,
    reactions: state.reactions,
    files: state.files,
    verificationToken,
    get tokens() {
      return granted
    },
    say({ text = '', user = 'ou_ada', chat = 'oc_ada', replyTo, inThread, mentions, type = 'text', content, passedOnIn, isLost = false }) {
      const message = chats.add(chat, {
        msg_type: type,
        sender: { id: user, id_type: 'open_id', sender_type: 'user' },
        body: { content: typeof content === 'string' ? content : JSON.stringify(content ?? { text }) },
        ...(passedOnIn !== undefined && { upper_message_id: passedOnIn }),
        ...(replyTo !== undefined && { parent: replyTo }),
        ...(inThread && { inThread }),
        ...(mentions && { mentions: mentions.map((mention) => ({ ...mention, id_type: 'open_id' as const })) }),
      })
      if (!isLost && passedOnIn === undefined) emit(messageEvent('im.message.receive_v1', message))
      return message.message_id
    },
    eventOf: (id) => messageEvent('im.message.receive_v1', found(id)),
    edit(id, text) {
      const changed = { ...found(id), body: { content: JSON.stringify({ text }) }, updated: true, update_time: chats.changedAt() }
      chats.replace(changed)
      return emit(messageEvent('im.message.updated_v1', changed))
    },
    recall(id) {
      const message = found(id)
      chats.replace({ ...message, deleted: true, body: { content: JSON.stringify({ text: 'This message was recalled' }) } })
      const event = { message_id: id, chat_id: message.chat_id, recall_time: chats.changedAt(), recall_type: 'message_owner' }
      return emit(envelope('im.message.recalled_v1', event))
    },
    press({ message: id, value, user = 'ou_ada' }) {
      const message = found(id)
      const button = buttonsOf(message).find((each) => each.value === value)
      if (!button) throw new Error(`message ${id} has no button ${value}`)
      return emit(
        envelope('card.action.trigger', {
          operator: { tenant_key: TENANT, ...idsOf(user) },
          token: `c-${randomUUID()}`,
          action: { value: button, tag: 'button' },
          host: 'im_message',
          context: { open_message_id: id, open_chat_id: message.chat_id },
        }),
      )
    },
    sent: (chat) => chats.list(chat).filter(({ sender }) => sender.sender_type === 'app'),
    messages: (chat) => chats.list(chat),
    revoke(forGood = false) {
      state.tokens.clear()
      if (forGood) appSecret = randomUUID()
    },
    setClientConfig(changed) {
      clientConfig = { ...clientConfig, ...changed }
    },
    async close() {
      socket.close()
      await provider.close()
    },
  }
}

interface Card {
  readonly body?: { readonly elements?: readonly CardElement[] }
}

interface CardElement {
  readonly tag: string
  readonly content?: string
  readonly columns?: readonly { readonly elements: readonly CardElement[] }[]
  readonly behaviors?: readonly { readonly value: { readonly value: string; readonly thread?: string } }[]
}

const elementsOf = (message: WorkchatMessage): readonly CardElement[] =>
  message.msg_type === 'interactive' ? ((JSON.parse(message.body.content) as Card).body?.elements ?? []) : []

/** Returns the values that the buttons of a message return. */
export const buttonsOf = (message: WorkchatMessage): readonly { readonly value: string; readonly thread?: string }[] =>
  elementsOf(message)
    .flatMap(({ columns = [] }) => columns.flatMap(({ elements }) => elements))
    .flatMap(({ behaviors = [] }) => behaviors.map(({ value }) => value))

/** Returns the text that people see in a message. */
export const textIn = (message: WorkchatMessage): string =>
  message.msg_type === 'interactive'
    ? elementsOf(message)
        .flatMap(({ tag, content = '' }) => (tag === 'markdown' ? content : []))
        .join('\n')
    : ((JSON.parse(message.body.content) as { text?: string }).text ?? '')

if (import.meta.main) {
  const fake = await startWorkchatFake({ port: Number(process.argv[2] ?? 0), nowMs: Date.now })
  console.log(`api_url = "${fake.url}", app_id = "${WORKCHAT_APP_ID}", app_secret = "${WORKCHAT_APP_SECRET}"`)
}
