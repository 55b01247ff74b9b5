/** The host API of bizchat on loopback: it checks requests as the real service does and records the accepted messages. */
import { randomUUID } from 'node:crypto'
import { type FakeProvider, type ProviderReply, type ProviderRequest, startFakeProvider } from '@sluice/testkit/fake-provider'

/** How the fake of bizchat starts. */
export interface BizchatFakeOptions {
  readonly port?: number
  /** The bearer token that every request must carry. */
  readonly token?: string
  /** The open conversations: the other party, and the account's channels that have a conversation with them. */
  readonly conversations?: Readonly<Record<string, readonly string[]>>
  /** Media by file name: the bytes, or the address they have moved to. */
  readonly media?: Readonly<Record<string, { readonly bytes: Uint8Array; readonly mime: string } | { readonly movedTo: string }>>
}

/** An accepted message. The service does not drop duplicates: the same text sent twice is two messages. */
export interface BizchatSent {
  readonly id: string
  readonly channel: string
  readonly to: string
  readonly text: string
  readonly file?: { readonly name: string; readonly bytes: Uint8Array }
}

/** A running fake of bizchat. */
export interface BizchatFake extends FakeProvider {
  readonly sent: readonly BizchatSent[]
  mediaUrl(fileName: string): string
  /** Replaces the bearer token that requests must carry. */
  changeToken(token: string): void
}

/** The default bearer token. */
export const BIZCHAT_TOKEN = 'bizchat-api-token-01'

const SEND = '/api/ext/v3/conversations/messages/text'
const SEND_FILE = '/api/ext/v3/conversations/messages/file'
const CAPTION_CHARS_MAX = 1024
const FILE_BYTES_MAX = 16 * 1_048_576
const MEDIA = '/api/file/showFile'
const TEXT_CHARS_MAX = 4096
const CONVERSATIONS: NonNullable<BizchatFakeOptions['conversations']> = { '15550002222': ['15550001111'] }

/** Starts the fake; call `close` to end it. */
export async function startBizchatFake(options: BizchatFakeOptions = {}): Promise<BizchatFake> {
  const { conversations = CONVERSATIONS, media = {} } = options
  let token = options.token ?? BIZCHAT_TOKEN
  const sent: BizchatSent[] = []

  const send = ({ headers, json }: ProviderRequest): ProviderReply => {
    const type = headers.get('content-type') ?? ''
    if (!/^application\/(?:json|json-patch\+json|\*\+json)\b/.test(type)) return refusal(415, 'Unsupported Media Type')
    const { target, text } = (typeof json === 'object' && json !== null ? json : {}) as { target?: unknown; text?: unknown }
    if (typeof text !== 'string' || text === '') return refusal(400, 'The text field is required.')
    if (text.length > TEXT_CHARS_MAX) return refusal(400, `The text is longer than ${TEXT_CHARS_MAX} characters.`)
    return take(target, { text })
  }

  const sendFile = async ({ headers, body }: ProviderRequest): Promise<ProviderReply> => {
    const type = headers.get('content-type') ?? ''
    if (!type.startsWith('multipart/form-data')) return refusal(415, 'Unsupported Media Type')
    const form = await new Response(new Uint8Array(body), { headers: { 'content-type': type } }).formData()
    const [target, file, caption] = [form.get('target'), form.get('file'), form.get('caption') ?? '']
    if (!(file instanceof File)) return refusal(400, 'The file field is required.')
    if (typeof caption !== 'string' || caption.length > CAPTION_CHARS_MAX) return refusal(400, 'The caption is too long.')
    if (file.size > FILE_BYTES_MAX) return { status: 413 }
    return take(target, { text: caption, file: { name: file.name, bytes: new Uint8Array(await file.arrayBuffer()) } })
  }

  const take = (target: unknown, content: Pick<BizchatSent, 'text' | 'file'>): ProviderReply => {
    const { text } = content
    if (typeof target !== 'string' || target === '') return refusal(400, 'The target field is required.')
    const [to = '', named] = target.split(':').reverse()
    const channels = Object.hasOwn(conversations, to) ? conversations[to] : undefined
    const open = channels?.filter((channel) => named === undefined || channel === named) ?? []
    if (open.length > 1) return refusal(409, 'Multiple conversations found, please specify the channel.')
    const [channel] = open
    if (channel === undefined) return refusal(404, 'Conversation not found.')
    const message = { id: randomUUID(), channel, to, ...content }
    sent.push(message)
    return { status: 200, body: { message: { id: message.id, local_message_id: randomUUID(), conversation_id: `c-${to}`, text } } }
  }

  const file = ({ query }: ProviderRequest): ProviderReply => {
    const name = query.get('fileName') ?? ''
    const found = Object.hasOwn(media, name) ? media[name] : undefined
    if (!found) return refusal(404, 'File not found.')
    if ('movedTo' in found) return { status: 302, headers: { location: found.movedTo } }
    return { status: 200, headers: { 'content-type': found.mime }, body: found.bytes }
  }

  const answer = async (request: ProviderRequest): Promise<ProviderReply> => {
    if (request.headers.get('authorization') !== `Bearer ${token}`) return { status: 401 }
    if (request.method === 'POST' && request.path === SEND) return send(request)
    if (request.method === 'POST' && request.path === SEND_FILE) return sendFile(request)
    if (request.method === 'GET' && request.path === MEDIA) return file(request)
    return { status: 404 }
  }

  const provider = await startFakeProvider(answer, options.port === undefined ? {} : { port: options.port })
  return {
    ...provider,
    sent,
    mediaUrl: (fileName) => `${provider.url}${MEDIA}?${new URLSearchParams({ fileName })}`,
    changeToken(next) {
      token = next
    },
  }
}

const refusal = (status: number, message: string): ProviderReply => ({ status, body: { code: status, message, details: [] } })

if (import.meta.main) {
  const fake = await startBizchatFake({ port: Number(process.argv[2] ?? 0) })
  console.log(`api_url = "${fake.url}", api_token = "${BIZCHAT_TOKEN}"`)
}
