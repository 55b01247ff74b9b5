/**
 * WeCom on loopback: the API of apps and group robots, and the long connection of an AI bot. Requests, answers and codes follow
 * https://developer.work.weixin.qq.com/document (path/90236 messages, 90253 uploads, 90254 downloads, 91039 tokens, 91770 group robots).
 */
import { createCipheriv, createHash, randomUUID } from 'node:crypto'
import { type FakeProvider, type ProviderReply, type ProviderRequest, startFakeProvider } from '@sluice/testkit/fake-provider'
import * as v from 'valibot'
import { FakeBot } from './fake-bot.ts'
import { APP, type Elements, envelope, queryOf, sealed, xml } from './seal.ts'

export const BOT = { bot_id: 'aib-bot-01', bot_secret: 'wecom-bot-secret-01' }
export const ROBOT_KEY = '693a91f6-7xxx-4bc4-97a0-0ec2sifa5aaa'

const TOKEN_SECS = 7200
const TEXT_BYTES_MAX = 2048
const MARKDOWN_BYTES_MAX = 4096
const MINUTE_MAX = 20

/** A message that a person writes to the AI bot. Members of `body` replace members of the callback. */
export interface Said {
  readonly text: string
  readonly sender?: string
  readonly chat?: string
  readonly body?: Readonly<Record<string, unknown>>
}

/** A message of the app or the group robot that WeCom accepted. */
export interface WecomSent {
  readonly via: 'app' | 'robot'
  readonly to: string
  readonly type: string
  readonly text?: string
  readonly mediaId?: string
  readonly card?: { readonly task: string; readonly keys: readonly string[] }
}

export interface WecomFake extends FakeProvider {
  readonly bot: FakeBot
  readonly wsUrl: string
  readonly sent: readonly WecomSent[]
  /** Files that people sent to the app, by id. */
  readonly files: Map<string, Uint8Array>
  readonly uploads: ReadonlyMap<string, { readonly name: string; readonly type: string; readonly bytes: Buffer }>
  readonly granted: number
  readonly unknown: Set<string>
  /** Writes to the AI bot. Returns the id of the message. */
  say(said: Said): string
  /** Makes a file that the AI bot gets: its address and its key. */
  encryptedFile(bytes: Uint8Array): { readonly url: string; readonly aeskey: string }
  /** Returns the callback for a message to the app. */
  callback(elements: Elements, atSecs?: number): { readonly path: string; readonly body: string }
  endTokens(): void
  changeSecrets(): void
}

export interface WecomFakeOptions {
  nowMs?(): number
  readonly isKept?: boolean
}

const media = v.strictObject({ media_id: v.string() })
const card = v.strictObject({
  card_type: v.literal('button_interaction'),
  main_title: v.strictObject({ title: v.string() }),
  button_list: v.array(v.strictObject({ text: v.string(), style: v.number(), key: v.string() })),
  task_id: v.pipe(v.string(), v.regex(/^[\w@-]{1,128}$/)),
})
const appContents = v.variant('msgtype', [
  v.looseObject({ msgtype: v.literal('text'), text: v.strictObject({ content: v.pipe(v.string(), v.minLength(1)) }) }),
  v.looseObject({ msgtype: v.picklist(['image', 'voice', 'video', 'file']) }),
  v.looseObject({ msgtype: v.literal('template_card'), template_card: card }),
])
const robotContents = v.variant('msgtype', [
  v.strictObject({ msgtype: v.literal('markdown'), markdown: v.strictObject({ content: v.pipe(v.string(), v.minLength(1)) }) }),
  v.strictObject({ msgtype: v.literal('file'), file: media }),
  v.strictObject({ msgtype: v.literal('image'), image: v.strictObject({ base64: v.string(), md5: v.string() }) }),
])

const answer = (errcode: number, errmsg: string, more: object = {}): ProviderReply => ({ status: 200, body: { errcode, errmsg, ...more } })
const HINT = ', hint: [1700000000_1_abc], from ip: 203.0.113.9, more info at https://open.work.weixin.qq.com/devtool/query?e=40014'

export async function startWecomFake({ nowMs = Date.now, isKept = false }: WecomFakeOptions = {}): Promise<WecomFake> {
  const tokens = new Map<string, number>()
  const sent: WecomSent[] = []
  const files = new Map<string, Uint8Array>()
  const encrypted = new Map<string, Buffer>()
  const uploads = new Map<string, { name: string; type: string; bytes: Buffer }>()
  const unknown = new Set<string>()
  const secrets = { app: APP.app_secret, bot: BOT.bot_secret, robot: ROBOT_KEY }
  let granted = 0
  let messages = 0
  let robotAtMs: number[] = []
  const bot = new FakeBot({ nowMs, botId: BOT.bot_id, secret: () => secrets.bot, isKept })

  function grant(query: URLSearchParams): ProviderReply {
    if (query.get('corpid') !== APP.corp_id) return answer(40_013, `invalid corpid${HINT}`)
    if (query.get('corpsecret') !== secrets.app) return answer(40_001, `invalid credential${HINT}`)
    granted += 1
    tokens.set(`token-${granted}`, nowMs() + TOKEN_SECS * 1000)
    return answer(0, 'ok', { access_token: `token-${granted}`, expires_in: TOKEN_SECS })
  }

  async function upload({ query, body, headers }: ProviderRequest): Promise<ProviderReply> {
    const form = await new Response(new Uint8Array(body), { headers: { 'content-type': headers.get('content-type') ?? '' } })
      .formData()
      .catch(() => new FormData())
    const file = form.get('media')
    const type = query.get('type') ?? ''
    if (!(file instanceof File) || file.name === '') return answer(41_005, 'media data missing')
    if (!['image', 'voice', 'video', 'file'].includes(type)) return answer(40_004, 'invalid media type')
    const bytes = Buffer.from(await file.arrayBuffer())
    const media_id = `media-${uploads.size + 1}`
    uploads.set(media_id, { name: file.name, type, bytes })
    return answer(0, 'ok', { type, media_id, created_at: '1700000000' })
  }

  function message(json: unknown): ProviderReply {
    const { touser, agentid, ...rest } = (json ?? {}) as { touser?: string; agentid?: number; msgtype?: string }
    if (agentid !== APP.agent_id) return answer(40_056, 'invalid agentid')
    if (typeof touser !== 'string' || touser === '') return answer(40_003, 'invalid touser')
    if (unknown.has(touser)) return answer(0, 'ok', { invaliduser: touser, msgid: `msg-${sent.length + 1}` })
    const parsed = v.safeParse(appContents, rest)
    if (!parsed.success) return answer(40_008, 'invalid message type')
    const content = parsed.output
    if (content.msgtype === 'text') {
      if (Buffer.byteLength(content.text.content) > TEXT_BYTES_MAX) return answer(45_002, 'content size out of limit')
      sent.push({ via: 'app', to: touser, type: 'text', text: content.text.content })
    } else if (content.msgtype === 'template_card') {
      const { task_id, button_list } = content.template_card
      sent.push({ via: 'app', to: touser, type: 'template_card', card: { task: task_id, keys: button_list.map(({ key }) => key) } })
    } else {
      const { media_id = '' } = ((rest as Record<string, unknown>)[content.msgtype] ?? {}) as { media_id?: string }
      if (!uploads.has(media_id)) return answer(40_007, 'invalid media_id')
      sent.push({ via: 'app', to: touser, type: content.msgtype, mediaId: media_id })
    }
    return answer(0, 'ok', { msgid: `msg-${sent.length}` })
  }

  async function robot(request: ProviderRequest): Promise<ProviderReply> {
    if (request.query.get('key') !== secrets.robot) return answer(93_000, `invalid webhook url${HINT}`)
    if (request.path.endsWith('/upload_media')) return upload(request)
    const parsed = v.safeParse(robotContents, request.json)
    if (!parsed.success) return answer(40_008, 'invalid message type')
    robotAtMs = robotAtMs.filter((atMs) => nowMs() - atMs < 60_000)
    if (robotAtMs.length >= MINUTE_MAX) return answer(45_009, 'api freq out of limit')
    robotAtMs.push(nowMs())
    const content = parsed.output
    if (content.msgtype === 'markdown') {
      if (Buffer.byteLength(content.markdown.content) > MARKDOWN_BYTES_MAX) return answer(40_058, 'markdown.content exceed max length 4096')
      sent.push({ via: 'robot', to: '', type: 'markdown', text: content.markdown.content })
    } else if (content.msgtype === 'file') {
      if (!uploads.has(content.file.media_id)) return answer(40_007, 'invalid media_id')
      sent.push({ via: 'robot', to: '', type: 'file', mediaId: content.file.media_id })
    } else {
      const bytes = Buffer.from(content.image.base64, 'base64')
      if (createHash('md5').update(bytes).digest('hex') !== content.image.md5) return answer(301_019, 'image md5 unmatch')
      sent.push({ via: 'robot', to: '', type: 'image' })
    }
    return answer(0, 'ok')
  }

  function reply(request: ProviderRequest): ProviderReply | Promise<ProviderReply> {
    const { method, path, query, json } = request
    const [, file] = /^\/encrypted\/([\w-]+)$/.exec(path) ?? []
    if (file !== undefined)
      return encrypted.has(file)
        ? { status: 200, headers: { 'content-type': 'application/octet-stream' }, body: encrypted.get(file) }
        : { status: 404 }
    if (method === 'GET' && path === '/cgi-bin/gettoken') return grant(query)
    if (method === 'POST' && path.startsWith('/cgi-bin/webhook/')) return robot(request)
    if (nowMs() >= (tokens.get(query.get('access_token') ?? '') ?? 0)) return answer(42_001, `access_token expired${HINT}`)
    if (method === 'POST' && path === '/cgi-bin/message/send') return message(json)
    if (method === 'POST' && path === '/cgi-bin/media/upload') return upload(request)
    if (method === 'GET' && path === '/cgi-bin/user/get') {
      const userid = query.get('userid') ?? ''
      return unknown.has(userid) ? answer(60_111, 'userid not found') : answer(0, 'ok', { userid, name: `Name of ${userid}` })
    }
    if (method !== 'GET' || path !== '/cgi-bin/media/get') return { status: 404 }
    const bytes = files.get(query.get('media_id') ?? '')
    if (!bytes) return answer(40_007, `invalid media_id${HINT}`)
    return { status: 200, headers: { 'content-type': 'image/png', 'content-disposition': 'attachment; filename="a.png"' }, body: bytes }
  }

  const provider = await startFakeProvider(reply, { upgrade: bot.upgrade })
  const fake: WecomFake = {
    ...provider,
    bot,
    wsUrl: provider.url.replace('http', 'ws'),
    sent,
    files,
    uploads,
    unknown,
    get granted() {
      return granted
    },
    say({ text, sender = 'ada', chat, body }) {
      messages += 1
      const msgid = `bot-message-${messages}`
      const content = chat === undefined ? text : `@Sluice ${text}`
      bot.push(
        'aibot_msg_callback',
        {
          msgid,
          create_time: Math.floor(nowMs() / 1000),
          aibotid: BOT.bot_id,
          ...(chat !== undefined && { chatid: chat }),
          chattype: chat === undefined ? 'single' : 'group',
          from: { userid: sender },
          response_url: 'https://qyapi.weixin.qq.com/cgi-bin/aibot/response?response_code=secret',
          msgtype: 'text',
          text: { content },
          ...body,
        },
        chat === undefined ? `user:${sender}` : `chat:${chat}`,
      )
      return msgid
    },
    encryptedFile(bytes) {
      const name = randomUUID()
      const key = createHash('sha256').update(name).digest()
      const count = 32 - (bytes.length % 32)
      const cipher = createCipheriv('aes-256-cbc', key, key.subarray(0, 16)).setAutoPadding(false)
      encrypted.set(name, Buffer.concat([cipher.update(Buffer.concat([bytes, Buffer.alloc(count, count)])), cipher.final()]))
      return { url: `${provider.url}/encrypted/${name}`, aeskey: key.toString('base64') }
    },
    callback(elements, atSecs = Math.floor(nowMs() / 1000)) {
      const random = Buffer.from(randomUUID().replaceAll('-', ''), 'hex')
      const body = envelope(sealed(xml({ ToUserName: APP.corp_id, ...elements, AgentID: APP.agent_id }), { random }))
      return { path: `/wecom?${new URLSearchParams(queryOf(body, atSecs))}`, body }
    },
    endTokens: () => tokens.clear(),
    changeSecrets() {
      Object.assign(secrets, { app: 'another', bot: 'another', robot: 'another' })
      tokens.clear()
    },
    async close() {
      bot.close()
      await provider.close()
    },
  }
  return fake
}

if (import.meta.main) {
  const { url, wsUrl } = await startWecomFake()
  console.log(url, wsUrl)
}
