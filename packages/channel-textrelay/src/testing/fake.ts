/** The partner API of textrelay on loopback: it checks requests as the real service does and records the accepted messages. */
import { randomUUID } from 'node:crypto'
import { hmacSha256 } from '@sluice/sdk'
import { type FakeProvider, type ProviderReply, type ProviderRequest, startFakeProvider } from '@sluice/testkit/fake-provider'

/** How the fake of textrelay starts. */
export interface TextrelayFakeOptions {
  readonly port?: number
  /** The bearer token that every request must carry. */
  readonly token?: string
  /** The phone numbers this token may send from. */
  readonly phones?: readonly string[]
  /** The chats by id, each with its other members. */
  readonly chats?: Readonly<Record<string, string>>
  /** Media by name, served at `mediaUrl`. */
  readonly media?: Readonly<Record<string, { readonly bytes: Uint8Array; readonly mime: string }>>
}

/** An accepted message; a repeat with the same idempotency key is not recorded again. */
export interface TextrelaySent {
  readonly id: string
  readonly chat: string
  readonly to: string
  readonly text: string
  readonly files: readonly { readonly name: string; readonly bytes: Uint8Array }[]
  readonly idempotencyKey: string | undefined
}

/** A running fake of textrelay. */
export interface TextrelayFake extends FakeProvider {
  /** The value for `api_url`. */
  readonly apiUrl: string
  readonly sent: readonly TextrelaySent[]
  /** The chats in which the typing indicator was started. */
  readonly typing: readonly string[]
  /** Removes a chat. */
  dropChat(id: string): void
  mediaUrl(name: string): string
  /** Replaces the bearer token that requests must carry. */
  changeToken(token: string): void
}

/** The default bearer token. */
export const TEXTRELAY_TOKEN = 'textrelay-api-token-01'
/** The default phone number of the account. */
export const TEXTRELAY_PHONE = '+15550001111'

const API = '/api/partner/v3'
/** The types in `SupportedContentType` of `@linqapp/sdk` that tests send. */
const FILE_TYPES = ['image/png', 'image/jpeg', 'text/plain', 'text/markdown', 'application/pdf', 'audio/mpeg', 'audio/x-m4a', 'video/mp4']
const FILE_BYTES_MAX = 100_000_000
const PARTS_MAX = 100
const KEY_CHARS_MAX = 255
const RECIPIENTS_MAX = 31

/** The service's error codes with their HTTP status and message. */
const PROBLEMS = {
  1001: [400, 'Missing required field'],
  1002: [400, 'Phone number must be in E.164 format'],
  1003: [400, 'Invalid request body'],
  1004: [400, 'Invalid message content'],
  1005: [400, 'Invalid parameter value'],
  2005: [404, 'Attachment not found'],
  2001: [404, 'Chat not found'],
  2004: [401, 'Unauthorized'],
  2003: [403, 'Typing indicators are not supported in group chats'],
  2006: [403, 'You do not have permission to send from this phone number'],
} as const

class Refusal extends Error {
  readonly code: keyof typeof PROBLEMS

  constructor(code: keyof typeof PROBLEMS) {
    super(PROBLEMS[code][1])
    this.code = code
  }
}

/** Starts the fake; call `close` to end it. */
export async function startTextrelayFake(options: TextrelayFakeOptions = {}): Promise<TextrelayFake> {
  const { phones = [TEXTRELAY_PHONE], media = {} } = options
  let token = options.token ?? TEXTRELAY_TOKEN
  const chats = new Map(Object.entries(options.chats ?? { 'chat-1': '+15550003333' }))
  const sent: TextrelaySent[] = []
  const typing: string[] = []
  const uploads = new Map<string, { readonly name: string; readonly type: string; readonly size: number; bytes?: Uint8Array }>()

  const beginUpload = (json: unknown): ProviderReply => {
    const [name, type, size] = ['filename', 'content_type', 'size_bytes'].map((key) => member(json, key))
    if (typeof name !== 'string' || typeof type !== 'string' || typeof size !== 'number') throw new Refusal(1001)
    if (!FILE_TYPES.includes(type) || size < 1 || size > FILE_BYTES_MAX) throw new Refusal(1005)
    const attachment_id = randomUUID()
    uploads.set(attachment_id, { name, type, size })
    const required_headers = { 'Content-Type': type, 'Content-Length': String(size) }
    const about = { attachment_id, upload_url: `${provider.url}/upload/${attachment_id}`, http_method: 'PUT', required_headers }
    return { status: 201, body: { ...about, download_url: `${provider.url}/media/${attachment_id}`, expires_at: new Date().toISOString() } }
  }

  /** Storage checks what was signed. */
  const takeUpload = (id: string, { headers, body }: ProviderRequest): ProviderReply => {
    const upload = uploads.get(id)
    const isSigned = upload && headers.get('content-type') === upload.type && body.length === upload.size && !headers.has('authorization')
    if (!isSigned) return { status: 403, body: '<Error><Code>SignatureDoesNotMatch</Code></Error>' }
    upload.bytes = new Uint8Array(body)
    return { status: 200 }
  }

  /** Records a message and returns it, or the earlier message with the same idempotency key. */
  const take = (chat: string, to: string, { text, key, ids }: CheckedMessage): TextrelaySent => {
    const known = sent.find(({ idempotencyKey }) => key !== undefined && idempotencyKey === key)
    if (known) return known
    const files = ids.map((id) => {
      const upload = uploads.get(id)
      if (!upload?.bytes) throw new Refusal(2005)
      return { name: upload.name, bytes: upload.bytes }
    })
    const message = { id: randomUUID(), chat, to, text, files, idempotencyKey: key }
    sent.push(message)
    return message
  }

  const sendInto = (id: string, json: unknown): ProviderReply => {
    const message = checkMessage(member(json, 'message'))
    const handle = chats.get(id)
    if (handle === undefined) throw new Refusal(2001)
    const taken = take(id, handle, message)
    return { status: 202, body: { chat_id: taken.chat, message: sentMessage(taken) } }
  }

  /** See `chats.typing` of `@linqapp/sdk`. The SDK does not give the codes of its refusals. */
  const showTyping = (id: string): ProviderReply => {
    const handle = chats.get(id)
    if (handle === undefined) throw new Refusal(2001)
    if (handle.includes(',')) throw new Refusal(2003)
    typing.push(id)
    return { status: 204 }
  }

  const beginChat = (json: unknown): ProviderReply => {
    const [from, to] = [member(json, 'from'), member(json, 'to')]
    if (from === undefined || to === undefined) throw new Refusal(1001)
    if (typeof from !== 'string' || !isE164(from)) throw new Refusal(1002)
    if (!phones.includes(from)) throw new Refusal(2006)
    if (!Array.isArray(to) || to.length === 0 || to.length > RECIPIENTS_MAX) throw new Refusal(1005)
    if (!to.every((handle) => typeof handle === 'string' && (isE164(handle) || isMail(handle)))) throw new Refusal(1002)
    const message = checkMessage(member(json, 'message'))
    if (/https?:\/\//i.test(message.text)) throw new Refusal(1005)
    const handle = to.join(',')
    const chat = [...chats].find(([, other]) => other === handle)?.[0] ?? randomUUID()
    chats.set(chat, handle)
    const taken = take(chat, handle, message)
    const handles = [from, ...to].map((other) => ({ id: randomUUID(), handle: other, service: 'iMessage', is_me: other === from }))
    const about = { id: taken.chat, display_name: handle, service: 'iMessage', is_group: to.length > 1, handles }
    return { status: 201, body: { chat: { ...about, message: sentMessage(taken) } } }
  }

  const answer = (request: ProviderRequest): ProviderReply => {
    const { method, path, headers, json } = request
    const file = /^\/media\/(.+)$/.exec(path)?.[1]
    const upload = /^\/upload\/(.+)$/.exec(path)?.[1]
    if (method === 'PUT' && upload) return takeUpload(upload, request)
    if (method === 'GET' && file) return fileReply(media[decodeURIComponent(file)])
    try {
      if (headers.get('authorization') !== `Bearer ${token}`) throw new Refusal(2004)
      if (method !== 'POST' || !path.startsWith(API)) return notFound()
      if (!/^application\/json\b/.test(headers.get('content-type') ?? '') || typeof json !== 'object' || json === null)
        throw new Refusal(1003)
      const chat = /^\/chats\/([^/]+)\/messages$/.exec(path.slice(API.length))?.[1]
      const typed = /^\/chats\/([^/]+)\/typing$/.exec(path.slice(API.length))?.[1]
      if (typed !== undefined) return showTyping(decodeURIComponent(typed))
      if (chat !== undefined) return sendInto(decodeURIComponent(chat), json)
      if (path === `${API}/attachments`) return beginUpload(json)
      return path === `${API}/chats` ? beginChat(json) : notFound()
    } catch (error) {
      if (error instanceof Refusal) return problem(error)
      throw error
    }
  }

  const provider = await startFakeProvider(answer, options.port === undefined ? {} : { port: options.port })
  return {
    ...provider,
    apiUrl: `${provider.url}${API}`,
    sent,
    typing,
    dropChat: (id) => void chats.delete(id),
    mediaUrl: (name) => `${provider.url}/media/${encodeURIComponent(name)}`,
    changeToken(next) {
      token = next
    },
  }
}

/** Signs a webhook body in both of the provider's formats; a secret without `whsec_` is used for the first only. */
export function textrelaySignatures(
  body: string | Uint8Array,
  options: { readonly secret: string; readonly id: string; readonly atMs: number },
): Record<string, string> {
  const { secret, id, atMs } = options
  const time = String(Math.floor(atMs / 1000))
  const key = secret.startsWith('whsec_') ? Buffer.from(secret.slice('whsec_'.length), 'base64') : undefined
  return {
    'X-Webhook-Event': 'message.received',
    'X-Webhook-Timestamp': time,
    'X-Webhook-Signature': hmacSha256(secret, `${time}.`, body).toString('hex'),
    ...(key && {
      'webhook-id': id,
      'webhook-timestamp': time,
      'webhook-signature': `v1,${hmacSha256(key, `${id}.${time}.`, body).toString('base64')}`,
    }),
  }
}

interface CheckedMessage {
  readonly text: string
  readonly key: string | undefined
  /** The ids of its files. */
  readonly ids: readonly string[]
}

function checkMessage(message: unknown): CheckedMessage {
  if (typeof message !== 'object' || message === null) throw new Refusal(1001)
  const [parts, key] = [member(message, 'parts'), member(message, 'idempotency_key')]
  if (!Array.isArray(parts) || parts.length === 0 || parts.length > PARTS_MAX) throw new Refusal(1004)
  const texts = parts.filter((part) => member(part, 'type') === 'text').map((part) => member(part, 'value'))
  const ids = parts.filter((part) => member(part, 'type') === 'media').map((part) => member(part, 'attachment_id'))
  const areGood = texts.every((text) => typeof text === 'string' && text !== '') && ids.every((id) => typeof id === 'string')
  // The service refuses two texts in a row.
  if (!areGood || texts.length > 1 || texts.length + ids.length !== parts.length) throw new Refusal(1004)
  if (key !== undefined && (typeof key !== 'string' || key === '' || key.length > KEY_CHARS_MAX)) throw new Refusal(1005)
  return { text: texts.join('\n'), key, ids: ids.map(String) }
}

const sentMessage = ({ id, text }: TextrelaySent) => ({
  id,
  delivery_status: 'queued',
  is_read: false,
  parts: [{ type: 'text', value: text, reactions: null }],
  sent_at: new Date().toISOString(),
})

const problem = ({ code, message }: Refusal): ProviderReply => ({
  status: PROBLEMS[code][0],
  body: { success: false, error: { status: PROBLEMS[code][0], code, message }, trace_id: randomUUID().replaceAll('-', '') },
})

const notFound = (): ProviderReply => ({ status: 404, headers: { 'content-type': 'text/plain' }, body: '404 page not found' })

const fileReply = (file: { readonly bytes: Uint8Array; readonly mime: string } | undefined): ProviderReply =>
  file ? { status: 200, headers: { 'content-type': file.mime }, body: file.bytes } : { status: 403, body: '<Error>expired</Error>' }

const member = (json: unknown, key: string): unknown =>
  typeof json === 'object' && json !== null ? (json as Readonly<Record<string, unknown>>)[key] : undefined

const isE164 = (text: string): boolean => /^\+[1-9]\d{1,14}$/.test(text)
const isMail = (text: string): boolean => /^[^@\s]+@[^@\s]+$/.test(text)

if (import.meta.main) {
  const fake = await startTextrelayFake({ port: Number(process.argv[2] ?? 0) })
  console.log(`api_url = "${fake.apiUrl}", api_token = "${TEXTRELAY_TOKEN}", from_phone = "${TEXTRELAY_PHONE}"`)
}
