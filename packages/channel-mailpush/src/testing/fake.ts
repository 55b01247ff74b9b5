/** The mail provider of mailpush on loopback: mail API, token endpoint and key server, with the refusals of the real ones. */
import { type FakeProvider, type ProviderReply, type ProviderRequest, startFakeProvider } from '@sluice/testkit/fake-provider'
import { createMailbox, type Mailbox, type MailParts, type StoredMail } from './fake-mailbox.ts'
import { createPushKeys, type PushKeys, pushEnvelope } from './fake-push.ts'
import { readSentMail, type SentMail } from './fake-sent.ts'
import { createTokens, type Tokens } from './fake-tokens.ts'

/** How the fake of mailpush starts. */
export interface MailpushFakeOptions {
  readonly mailbox?: string
  /** The initial access token. */
  readonly accessToken?: string
  /** The maximum number of changes or mails on one page. */
  readonly pageSize?: number
  /** Sends history ids as JSON numbers. The real API sends strings, but its pushes send numbers. */
  readonly numericIds?: boolean
  nowMs?(): number
  readonly port?: number
}

/** A running fake of mailpush. */
export interface MailpushFake extends FakeProvider {
  readonly mailbox: Mailbox
  readonly keys: PushKeys
  /** The sent mails, in order. */
  readonly sent: readonly SentMail[]
  /** The bodies of the watch requests, in order. */
  readonly watches: readonly unknown[]
  /** The OAuth client that the token endpoint accepts. */
  readonly client: Tokens['client']
  /** Delivers a mail to the mailbox. */
  receive(parts: MailParts): StoredMail
  /** The body of the push request that follows a change. */
  push(): string
  /** Invalidates the current access tokens. */
  expireTokens(): void
}

const MAILBOX_PATH = '/gmail/v1/users/me'
const WATCH_MS = 7 * 24 * 3_600_000

/** Starts the fake; call `close` to end it. */
/** Google's APIs take a JSON body of a few megabytes only. */
const RAW_CHARS_MAX = 5_000_000
const UPLOAD_BYTES_MAX = 35_000_000

export async function startMailpushFake(options: MailpushFakeOptions = {}): Promise<MailpushFake> {
  const { pageSize = 100, numericIds = false, nowMs = Date.now } = options
  const mailbox = createMailbox(options.mailbox ?? 'bot@example.com', nowMs)
  const keys = createPushKeys()
  const sent: SentMail[] = []
  const watches: unknown[] = []
  const tokens = createTokens(options.accessToken ?? 'oauth-token-01')

  const wireId = (id: bigint): string | number => (numericIds ? Number(id) : String(id))
  /** Returns one page of a list as of the time of its first page, with the token of the next; `undefined` if a parameter is invalid. */
  const page = <Item>(list: (asOf: bigint) => readonly Item[], { query }: ProviderRequest) => {
    const token = query.get('pageToken') ?? `0.${mailbox.now()}`
    const [, from, asOf] = /^(\d+)\.(\d+)$/.exec(token) ?? []
    const size = Math.min(pageSize, Number(query.get('maxResults') ?? 100))
    if (from === undefined || asOf === undefined || !(size > 0)) return undefined
    const items = list(BigInt(asOf))
    const end = Number(from) + size
    return { items: items.slice(Number(from), end), more: end < items.length ? { nextPageToken: `${end}.${asOf}` } : {} }
  }

  const watch = ({ json }: ProviderRequest): ProviderReply => {
    const { topicName, labelIds, labelFilterBehavior } = (json ?? {}) as Record<string, unknown>
    if (typeof topicName !== 'string' || !/^projects\/[^/]+\/topics\/[^/]+$/.test(topicName)) return refusal(400, 'Invalid topicName')
    if (labelIds !== undefined && !isTexts(labelIds)) return refusal(400, 'Invalid labelIds')
    if (labelFilterBehavior !== undefined && !['INCLUDE', 'EXCLUDE'].includes(String(labelFilterBehavior))) {
      return refusal(400, 'Invalid labelFilterBehavior')
    }
    watches.push(json)
    return { status: 200, body: { historyId: wireId(mailbox.now()), expiration: String(nowMs() + WATCH_MS) } }
  }

  const history = (request: ProviderRequest): ProviderReply => {
    const { query } = request
    const start = query.get('startHistoryId') ?? ''
    if (!/^\d{1,20}$/.test(start)) return refusal(400, 'Missing or invalid startHistoryId')
    if (BigInt(start) < mailbox.oldest()) return refusal(404, 'Requested entity was not found.')
    const label = query.get('labelId')
    const found = page(
      (asOf) =>
        mailbox.changes.filter(({ id, mail }) => id > BigInt(start) && id <= asOf && (label === null || mail.labelIds.includes(label))),
      request,
    )
    if (!found) return refusal(400, 'Invalid pageToken')
    const records = found.items.map(({ id, mail: { id: mail, threadId, labelIds } }) => ({
      id: wireId(id),
      messages: [{ id: mail, threadId }],
      messagesAdded: [{ message: { id: mail, threadId, labelIds } }],
    }))
    const all = { ...(records.length > 0 && { history: records }), historyId: wireId(mailbox.now()), ...found.more }
    return { status: 200, body: all }
  }

  const list = (request: ProviderRequest): ProviderReply => {
    const { query } = request
    const [, after] = /^after:(\d+)$/.exec(query.get('q') ?? '') ?? []
    if (after === undefined) return refusal(400, 'This fake supports only the query after:<seconds>')
    const labels = query.getAll('labelIds')
    const wanted = [...mailbox.mails.values()].filter(
      (mail) => Number(mail.internalDate) >= Number(after) * 1000 && labels.every((label) => mail.labelIds.includes(label)),
    )
    const found = page((asOf) => wanted.filter(({ historyId }) => BigInt(historyId) <= asOf).reverse(), request)
    if (!found) return refusal(400, 'Invalid pageToken')
    const messages = found.items.map(({ id, threadId }) => ({ id, threadId }))
    return { status: 200, body: { ...(messages.length > 0 && { messages }), ...found.more, resultSizeEstimate: wanted.length } }
  }

  const send = ({ json, headers }: ProviderRequest): ProviderReply => {
    const { raw, threadId } = (json ?? {}) as Record<string, unknown>
    if (!headers.get('content-type')?.startsWith('application/json') || typeof raw !== 'string') {
      return refusal(400, "'raw' RFC822 payload message string or uploading message via /upload/* URL required")
    }
    if (raw.length > RAW_CHARS_MAX) return refusal(413, 'Request Entity Too Large')
    return takeSent(raw, threadId)
  }

  /** A mail in a form of two parts; see https://developers.google.com/workspace/gmail/api/guides/uploads#multipart. */
  const upload = ({ headers, body, query }: ProviderRequest): ProviderReply => {
    const [, boundary] = /^multipart\/related; boundary="([^"]+)"$/.exec(headers.get('content-type') ?? '') ?? []
    if (boundary === undefined || query.get('uploadType') !== 'multipart') return refusal(400, 'Bad content-type or uploadType')
    if (body.length > UPLOAD_BYTES_MAX) return refusal(413, 'Request Entity Too Large')
    const [, about = '', mail = '', end] = body.toString().split(`--${boundary}`)
    if (end?.trim() !== '--' || !mail.startsWith('\r\nContent-Type: message/rfc822\r\n\r\n'))
      return refusal(400, 'Malformed multipart body.')
    const { threadId } = JSON.parse(about.slice(about.indexOf('\r\n\r\n'))) as { threadId?: unknown }
    return takeSent(Buffer.from(mail.slice(mail.indexOf('\r\n\r\n') + 4, -2)).toString('base64url'), threadId)
  }

  const takeSent = (raw: string, threadId: unknown): ProviderReply => {
    const read = readSentMail(raw, typeof threadId === 'string' ? threadId : undefined)
    if (typeof read === 'string') return refusal(400, read)
    if (threadId !== undefined && ![...mailbox.mails.values()].some((mail) => mail.threadId === threadId)) {
      return refusal(404, 'Requested entity was not found.')
    }
    sent.push(read)
    const {
      id,
      threadId: thread,
      labelIds,
    } = mailbox.add({
      from: mailbox.address,
      subject: read.headers.get('subject') ?? '',
      text: read.text,
      labels: ['SENT'],
      ...(read.threadId !== undefined && { threadId: read.threadId }),
    })
    return { status: 200, body: { id, threadId: thread, labelIds } }
  }

  const mail = (id: string, { query }: ProviderRequest): ProviderReply => {
    const found = mailbox.mails.get(id)
    if (!found) return refusal(404, 'Requested entity was not found.')
    const body = { ...found, historyId: wireId(BigInt(found.historyId)) }
    const { headers } = (found.payload ?? {}) as { headers?: unknown }
    return { status: 200, body: query.get('format') === 'metadata' ? { ...body, payload: { mimeType: 'multipart/mixed', headers } } : body }
  }

  const attachment = (key: string): ProviderReply => {
    const bytes = mailbox.attachments.get(key)
    if (!bytes) return refusal(404, 'Requested entity was not found.')
    return { status: 200, body: { size: bytes.length, data: Buffer.from(bytes).toString('base64url') } }
  }

  const answer = (request: ProviderRequest): ProviderReply => {
    const { method, path } = request
    if (path === '/token') return tokens.grant(request)
    if (path === '/oauth2/v3/certs') return { status: 200, body: keys.jwks() }
    const isUpload = path === `/upload${MAILBOX_PATH}/messages/send`
    if (!path.startsWith(`${MAILBOX_PATH}/`) && !isUpload) return refusal(404, 'Not Found')
    const [, token] = /^Bearer (\S+)$/.exec(request.headers.get('authorization') ?? '') ?? []
    if (token === undefined || !tokens.isGood(token)) return refusal(401, 'Request had invalid authentication credentials.')
    if (isUpload && method === 'POST') return upload(request)
    const [, id, attachmentId] = /^\/messages\/([^/]+)(?:\/attachments\/([^/]+))?$/.exec(path.slice(MAILBOX_PATH.length)) ?? []
    switch (`${method} ${path.slice(MAILBOX_PATH.length)}`) {
      case 'GET /profile':
        return { status: 200, body: { emailAddress: mailbox.address, historyId: wireId(mailbox.now()) } }
      case 'POST /watch':
        return watch(request)
      case 'GET /history':
        return history(request)
      case 'GET /messages':
        return list(request)
      case 'POST /messages/send':
        return send(request)
      default:
        if (method !== 'GET' || id === undefined) return refusal(404, 'Not Found')
        return attachmentId === undefined ? mail(id, request) : attachment(`${id}/${attachmentId}`)
    }
  }

  const provider = await startFakeProvider(answer, options)
  return {
    ...provider,
    mailbox,
    keys,
    sent,
    watches,
    client: tokens.client,
    receive: (parts) => mailbox.add(parts),
    push: () => pushEnvelope({ emailAddress: mailbox.address, historyId: Number(mailbox.now()) }),
    expireTokens: tokens.expire,
  }
}

const STATUSES: Readonly<Record<number, string>> = { 400: 'INVALID_ARGUMENT', 401: 'UNAUTHENTICATED', 404: 'NOT_FOUND' }

const refusal = (code: number, message: string): ProviderReply => ({
  status: code,
  body: { error: { code, message, errors: [{ message, domain: 'global', reason: 'invalid' }], status: STATUSES[code] } },
})

const isTexts = (value: unknown): boolean => Array.isArray(value) && value.every((item) => typeof item === 'string')

if (import.meta.main) {
  const fake = await startMailpushFake({ port: Number(process.argv[2] ?? 0) })
  const { url, client } = fake
  console.log(
    [
      `api_url = "${url}"`,
      `token_url = "${url}/token"`,
      `jwks_url = "${url}/oauth2/v3/certs"`,
      'oauth_token = "oauth-token-01"',
      ...Object.entries(client).map(([name, value]) => `${name} = "${value}"`),
    ].join('\n'),
  )
}
