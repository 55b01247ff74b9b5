/**
 * The Messaging API of LINE on loopback. Requests, answers and refusals follow its reference
 * (https://developers.line.biz/en/reference/messaging-api/) and its guides on retries and on reply tokens.
 */
import { type FakeProvider, type ProviderReply, type ProviderRequest, startFakeProvider } from '@sluice/testkit/fake-provider'
import * as v from 'valibot'

export const LINE_TOKEN = 'line-channel-access-token-01'
export const LINE_BOT = `U${'b'.repeat(32)}`
export const LINE_USER = `U${'a'.repeat(32)}`
export const LINE_GROUP = `C${'c'.repeat(32)}`

/** A message that LINE accepted. */
export interface LineSent {
  readonly id: string
  readonly to: string
  readonly text: string
  readonly by: 'reply' | 'push'
  readonly quoteToken?: string
  readonly buttons: readonly string[]
}

export interface LineFakeOptions {
  readonly port?: number
  nowMs?(): number
}

export interface LineFake extends FakeProvider {
  readonly sent: readonly LineSent[]
  readonly loading: readonly object[]
  /** Issues a reply token for a conversation; the same name gives the same token. */
  replyToken(name: string, to: string): string
  /** Stores the file of a message; `preparingFor` requests for it are answered with 202 first. */
  addFile(
    message: string,
    file: { readonly bytes: Uint8Array; readonly mime: string; readonly preparingFor?: number; readonly fails?: true },
  ): void
  /** The pushes that the official account may still send this month. */
  quota: number
  revoke(): void
}

const TOKEN_MS = 60_000
const RETRY_KEY_MS = 86_400_000
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const RECIPIENT = /^[UCR][0-9a-f]{32}$/

const message = v.strictObject({
  type: v.literal('text'),
  text: v.pipe(v.string(), v.minLength(1), v.maxLength(5000)),
  quoteToken: v.optional(v.pipe(v.string(), v.minLength(1))),
  quickReply: v.optional(
    v.strictObject({
      items: v.pipe(
        v.array(
          v.strictObject({
            type: v.literal('action'),
            action: v.strictObject({
              type: v.literal('postback'),
              label: v.pipe(v.string(), v.minLength(1), v.maxLength(20)),
              data: v.pipe(v.string(), v.minLength(1), v.maxLength(300)),
              displayText: v.optional(v.pipe(v.string(), v.maxLength(300))),
            }),
          }),
        ),
        v.minLength(1),
        v.maxLength(13),
      ),
    }),
  ),
})
const messages = v.pipe(v.array(message), v.minLength(1), v.maxLength(5))
const replySchema = v.strictObject({ replyToken: v.string(), messages, notificationDisabled: v.optional(v.boolean()) })
const pushSchema = v.strictObject({ to: v.string(), messages, notificationDisabled: v.optional(v.boolean()) })
const loadingSchema = v.strictObject({
  chatId: v.pipe(v.string(), v.regex(/^U/)),
  loadingSeconds: v.pipe(v.number(), v.minValue(5), v.maxValue(60), v.multipleOf(5)),
})
type Message = v.InferOutput<typeof message>

const refusal = (status: number, text: string): ProviderReply => ({ status, body: { message: text } })

export async function startLineFake({ port = 0, nowMs = Date.now }: LineFakeOptions = {}): Promise<LineFake> {
  const sent: LineSent[] = []
  const loading: object[] = []
  const tokens = new Map<string, { readonly to: string; readonly atMs: number; isUsed: boolean }>()
  const accepted = new Map<string, { readonly atMs: number; readonly answer: object }>()
  const files = new Map<string, { readonly bytes: Uint8Array; readonly mime: string; preparingFor: number; readonly fails: boolean }>()
  let token = LINE_TOKEN
  const state = { quota: Number.POSITIVE_INFINITY }

  const accept = (to: string, by: LineSent['by'], accepted: readonly Message[]): object => ({
    sentMessages: accepted.map(({ text, quoteToken, quickReply }) => {
      const id = String(461_230_966_842_064_897n + BigInt(sent.length))
      const buttons = quickReply?.items.map(({ action }) => action.data) ?? []
      sent.push({ id, to, text, by, ...(quoteToken !== undefined && { quoteToken }), buttons })
      return { id, quoteToken: `quote-${id}` }
    }),
  })

  function reply({ json, headers }: ProviderRequest): ProviderReply {
    const parsed = v.safeParse(replySchema, json)
    if (!parsed.success) return invalid(parsed.issues)
    if (headers.has('x-line-retry-key')) return refusal(400, 'Retry key is not supported for this API')
    const known = tokens.get(parsed.output.replyToken)
    if (!known || known.isUsed || nowMs() - known.atMs > TOKEN_MS) return refusal(400, 'Invalid reply token')
    known.isUsed = true
    return { status: 200, body: accept(known.to, 'reply', parsed.output.messages) }
  }

  function push({ json, headers }: ProviderRequest): ProviderReply {
    const parsed = v.safeParse(pushSchema, json)
    const key = headers.get('x-line-retry-key')
    if (!parsed.success) return invalid(parsed.issues)
    if (!RECIPIENT.test(parsed.output.to)) return refusal(400, "The property, 'to', in the request body is invalid (line: -, column: -)")
    if (key !== null && !UUID.test(key)) return refusal(400, 'Invalid retry key')
    const before = accepted.get(key ?? '')
    if (key !== null && before && nowMs() - before.atMs < RETRY_KEY_MS) {
      const headers = { 'x-line-accepted-request-id': '123e4567-e89b-12d3-a456-426655440001' }
      return { status: 409, headers, body: { message: 'The retry key is already accepted', ...before.answer } }
    }
    if (state.quota < parsed.output.messages.length) return refusal(429, 'You have reached your monthly limit.')
    state.quota -= parsed.output.messages.length
    const answer = accept(parsed.output.to, 'push', parsed.output.messages)
    if (key !== null) accepted.set(key, { atMs: nowMs(), answer })
    return { status: 200, body: answer }
  }

  function file(id: string, isStatus: boolean): ProviderReply {
    const found = files.get(id)
    if (!found) return refusal(404, 'Not found')
    if (isStatus) return { status: 200, body: { status: found.fails ? 'failed' : found.preparingFor > 0 ? 'processing' : 'succeeded' } }
    if (found.preparingFor > 0) {
      found.preparingFor -= 1
      return { status: 202 }
    }
    return { status: 200, headers: { 'content-type': found.mime }, body: found.bytes }
  }

  function answer(request: ProviderRequest): ProviderReply {
    const { method, path, headers, json } = request
    if (headers.get('authorization') !== `Bearer ${token}`) {
      return refusal(401, 'Authentication failed. Confirm that the access token in the authorization header is valid.')
    }
    if (method === 'POST' && path === '/v2/bot/message/reply') return reply(request)
    if (method === 'POST' && path === '/v2/bot/message/push') return push(request)
    if (method === 'POST' && path === '/v2/bot/chat/loading/start') {
      const parsed = v.safeParse(loadingSchema, json)
      if (!parsed.success) return invalid(parsed.issues)
      loading.push(parsed.output)
      return { status: 202, body: {} }
    }
    if (method === 'GET' && path === '/v2/bot/info')
      return { status: 200, body: { userId: LINE_BOT, basicId: '@sluice', displayName: 'Sluice', chatMode: 'bot', markAsReadMode: 'auto' } }
    const [, profile = ''] = /^\/v2\/bot\/(?:profile|(?:group\/C|room\/R)[0-9a-f]{32}\/member)\/(U[0-9a-f]{32})$/.exec(path) ?? []
    if (method === 'GET' && profile !== '') return { status: 200, body: { displayName: `Name of ${profile.slice(0, 2)}`, userId: profile } }
    const [, id = '', status] = /^\/v2\/bot\/message\/([^/]+)\/content(\/transcoding)?$/.exec(path) ?? []
    if (method === 'GET' && id !== '') return file(id, status !== undefined)
    return refusal(404, 'Not found')
  }

  const provider = await startFakeProvider(answer, { port })
  return {
    ...provider,
    sent,
    loading,
    replyToken(name, to) {
      const issued = `reply-token-${name}`
      if (!tokens.has(issued)) tokens.set(issued, { to, atMs: nowMs(), isUsed: false })
      return issued
    },
    addFile: (id, { bytes, mime, preparingFor = 0, fails }) => void files.set(id, { bytes, mime, preparingFor, fails: fails ?? false }),
    get quota() {
      return state.quota
    },
    set quota(quota: number) {
      state.quota = quota
    },
    revoke() {
      token = 'another-token'
    },
  }
}

const invalid = (issues: readonly v.BaseIssue<unknown>[]): ProviderReply => ({
  status: 400,
  body: {
    message: 'The request body has 1 error(s)',
    details: issues.slice(0, 1).map((issue) => ({ message: issue.message, property: v.getDotPath(issue) ?? '' })),
  },
})

if (import.meta.main) {
  const fake = await startLineFake({ port: Number(process.argv[2] ?? 0) })
  console.log(`api_url = "${fake.url}", channel_access_token = "${LINE_TOKEN}"`)
}
