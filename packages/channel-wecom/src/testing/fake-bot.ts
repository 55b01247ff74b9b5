/**
 * The long connection of an AI bot: subscription, pings, callbacks and requests. Written from @wecom/aibot-node-sdk 1.0.7 and
 * https://developer.work.weixin.qq.com/document/path/101463.
 */
import { createHash, randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import * as v from 'valibot'
import { type WebSocket, WebSocketServer } from 'ws'

const REQUEST_MS = 300_000
const CONTENT_BYTES_MAX = 20_480
const CHUNK_BYTES_MAX = 512 * 1024
const MINUTE_MAX = 30

export interface BotSent {
  readonly via: 'answer' | 'send'
  readonly chat: string
  readonly type: string
  readonly text?: string
  readonly mediaId?: string
  readonly card?: { readonly task: string; readonly buttons: readonly { readonly text: string; readonly key: string }[] }
}

export interface FakeBotOptions {
  nowMs(): number
  readonly botId: string
  secret(): string
  /** True: a message waits for a connection. The documentation promises nothing of the kind. */
  readonly isKept: boolean
}

const media = v.strictObject({ media_id: v.string() })
const contents = {
  markdown: v.strictObject({ msgtype: v.literal('markdown'), markdown: v.strictObject({ content: v.pipe(v.string(), v.minLength(1)) }) }),
  image: v.strictObject({ msgtype: v.literal('image'), image: media }),
  file: v.strictObject({ msgtype: v.literal('file'), file: media }),
  video: v.strictObject({ msgtype: v.literal('video'), video: media }),
  voice: v.strictObject({ msgtype: v.literal('voice'), voice: media }),
  template_card: v.strictObject({
    msgtype: v.literal('template_card'),
    template_card: v.strictObject({
      card_type: v.literal('button_interaction'),
      main_title: v.strictObject({ title: v.pipe(v.string(), v.minLength(1)) }),
      button_list: v.pipe(
        v.array(v.strictObject({ text: v.string(), style: v.number(), key: v.string() })),
        v.minLength(1),
        v.maxLength(6),
      ),
      task_id: v.pipe(v.string(), v.regex(/^[\w@-]{1,128}$/)),
    }),
  }),
}
const streamSchema = v.strictObject({
  msgtype: v.literal('stream'),
  stream: v.strictObject({ id: v.string(), finish: v.boolean(), content: v.pipe(v.string(), v.minLength(1)) }),
})
const initSchema = v.strictObject({
  type: v.string(),
  filename: v.string(),
  total_size: v.number(),
  total_chunks: v.pipe(v.number(), v.maxValue(100)),
  md5: v.string(),
})

interface Frame {
  readonly cmd?: string
  readonly headers?: { readonly req_id?: string }
  readonly body?: Readonly<Record<string, unknown>>
}

export class FakeBot {
  readonly sent: BotSent[] = []
  readonly uploads = new Map<string, { readonly name: string; readonly type: string; readonly bytes: Buffer }>()
  pings = 0
  opened = 0
  /** The number of requests that got no answer because of `silent`. */
  unanswered = 0
  /** Requests with these commands get no answer. */
  readonly silent = new Set<string>()
  readonly #options: FakeBotOptions
  readonly #server = new WebSocketServer({ noServer: true, autoPong: false })
  readonly #sockets = new Set<WebSocket>()
  readonly #muted = new Set<WebSocket>()
  /** The connection that is subscribed; WeCom allows one. */
  #current: WebSocket | undefined
  readonly #kept: string[] = []
  /** Chats by the `req_id` of their message. */
  readonly #requests = new Map<string, { readonly chat: string; readonly untilMs: number }>()
  readonly #pending = new Map<string, { readonly init: v.InferOutput<typeof initSchema>; readonly chunks: Map<number, Buffer> }>()
  readonly #writtenAtMs = new Map<string, number[]>()

  constructor(options: FakeBotOptions) {
    this.#options = options
  }

  get isSubscribed(): boolean {
    return this.#current !== undefined
  }

  get open(): number {
    return this.#sockets.size
  }

  readonly upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    this.#server.handleUpgrade(request, socket, head, (opened) => this.#welcome(opened))
  }

  /** Sends a callback. */
  push(cmd: 'aibot_msg_callback' | 'aibot_event_callback', body: Readonly<Record<string, unknown>>, chat: string): void {
    const req_id = randomUUID()
    this.#requests.set(req_id, { chat, untilMs: this.#options.nowMs() + REQUEST_MS })
    const frame = JSON.stringify({ cmd, headers: { req_id }, body })
    if (this.#current && !this.#muted.has(this.#current)) this.#current.send(frame)
    else if (this.#options.isKept) this.#kept.push(frame)
  }

  raw(frame: string): void {
    for (const socket of this.#sockets) socket.send(frame)
  }

  mute(): void {
    for (const socket of this.#sockets) this.#muted.add(socket)
  }

  /** Forgets the messages that it keeps, and breaks the connection, to which another message would be written. */
  forget(): void {
    this.#kept.length = 0
    this.#current = undefined
    for (const socket of this.#sockets) socket.terminate()
  }

  endRequests(): void {
    this.#requests.clear()
  }

  close(): void {
    for (const socket of this.#sockets) socket.terminate()
    this.#server.close()
  }

  #welcome(socket: WebSocket): void {
    this.#sockets.add(socket)
    this.opened += 1
    socket.on('message', (data) => void (!this.#muted.has(socket) && this.#take(socket, JSON.parse(String(data)) as Frame)))
    socket.on('ping', (data) => void (!this.#muted.has(socket) && socket.pong(data)))
    socket.on('close', () => {
      this.#sockets.delete(socket)
      if (this.#current === socket) this.#current = undefined
    })
  }

  #take(socket: WebSocket, { cmd = '', headers: { req_id = '' } = {}, body = {} }: Frame): void {
    if (this.silent.has(cmd)) {
      this.unanswered += 1
      return
    }
    const answer = (errcode: number, errmsg: string, result?: object): void =>
      socket.send(JSON.stringify({ headers: { req_id }, errcode, errmsg, ...(result && { body: result }) }))
    if (cmd === 'aibot_subscribe') return void this.#subscribe(socket, body, answer)
    if (socket !== this.#current) return void answer(846_605, 'not subscribed')
    if (cmd === 'ping') {
      this.pings += 1
      return void answer(0, 'ok')
    }
    const outcome = this.#execute(cmd, req_id, body)
    answer(outcome.errcode ?? 0, outcome.errmsg ?? 'ok', outcome.body)
  }

  #subscribe(
    socket: WebSocket,
    { bot_id, secret }: Readonly<Record<string, unknown>>,
    answer: (errcode: number, errmsg: string) => void,
  ): void {
    if (bot_id !== this.#options.botId || secret !== this.#options.secret()) return void answer(853_000, 'invalid bot_id or secret')
    const before = this.#current
    if (before) {
      const event = {
        msgid: randomUUID(),
        create_time: Math.floor(this.#options.nowMs() / 1000),
        aibotid: bot_id,
        msgtype: 'event',
        event: { eventtype: 'disconnected_event' },
      }
      before.send(JSON.stringify({ cmd: 'aibot_event_callback', headers: { req_id: randomUUID() }, body: event }))
      before.close(1000)
    }
    this.#current = socket
    answer(0, 'ok')
    for (const frame of this.#kept.splice(0)) socket.send(frame)
  }

  #execute(cmd: string, reqId: string, body: Readonly<Record<string, unknown>>): { errcode?: number; errmsg?: string; body?: object } {
    switch (cmd) {
      case 'aibot_respond_msg':
        return this.#answer(reqId, body)
      case 'aibot_send_msg':
        return this.#send(body)
      case 'aibot_upload_media_init': {
        const { success, output } = v.safeParse(initSchema, body)
        if (!success) return { errcode: 40_058, errmsg: 'invalid parameter' }
        const upload_id = randomUUID()
        this.#pending.set(upload_id, { init: output, chunks: new Map() })
        return { body: { upload_id } }
      }
      case 'aibot_upload_media_chunk': {
        const upload = this.#pending.get(String(body.upload_id))
        const bytes = Buffer.from(String(body.base64_data), 'base64')
        if (!upload || bytes.length > CHUNK_BYTES_MAX || Number(body.chunk_index) >= upload.init.total_chunks)
          return { errcode: 40_058, errmsg: 'invalid parameter' }
        upload.chunks.set(Number(body.chunk_index), bytes)
        return {}
      }
      case 'aibot_upload_media_finish':
        return this.#finish(String(body.upload_id))
      default:
        return { errcode: 40_058, errmsg: 'invalid cmd' }
    }
  }

  #answer(reqId: string, body: Readonly<Record<string, unknown>>) {
    const request = this.#requests.get(reqId)
    if (!request || this.#options.nowMs() > request.untilMs) return { errcode: 846_604, errmsg: 'invalid req_id' }
    const { success, output } = v.safeParse(streamSchema, body)
    if (!success || Buffer.byteLength(output.stream.content) > CONTENT_BYTES_MAX) return { errcode: 40_058, errmsg: 'invalid parameter' }
    this.sent.push({ via: 'answer', chat: request.chat, type: 'stream', text: output.stream.content })
    return {}
  }

  #send({ chatid, chat_type, ...body }: Readonly<Record<string, unknown>>) {
    const schema = contents[String(body.msgtype) as keyof typeof contents]
    const parsed = schema ? v.safeParse(schema, body) : undefined
    if (typeof chatid !== 'string' || (chat_type !== 1 && chat_type !== 2) || !parsed?.success)
      return { errcode: 40_058, errmsg: 'invalid parameter' }
    const recent = (this.#writtenAtMs.get(chatid) ?? []).filter((atMs) => this.#options.nowMs() - atMs < 60_000)
    if (recent.length >= MINUTE_MAX) return { errcode: 45_009, errmsg: 'api freq out of limit, hint: [1700000000000_1]' }
    this.#writtenAtMs.set(chatid, [...recent, this.#options.nowMs()])
    const message = parsed.output
    const chat = `${chat_type === 1 ? 'user' : 'chat'}:${chatid}`
    if (message.msgtype === 'markdown') this.sent.push({ via: 'send', chat, type: 'markdown', text: message.markdown.content })
    else if (message.msgtype === 'template_card') {
      const { task_id, button_list } = message.template_card
      this.sent.push({ via: 'send', chat, type: 'template_card', card: { task: task_id, buttons: button_list } })
    } else {
      const { media_id } = (message as unknown as Record<string, { media_id: string }>)[message.msgtype] ?? { media_id: '' }
      if (!this.uploads.has(media_id)) return { errcode: 40_007, errmsg: 'invalid media_id' }
      this.sent.push({ via: 'send', chat, type: message.msgtype, mediaId: media_id })
    }
    return {}
  }

  #finish(uploadId: string) {
    const upload = this.#pending.get(uploadId)
    if (!upload) return { errcode: 40_058, errmsg: 'invalid upload_id' }
    const { total_size, total_chunks, md5, filename, type } = upload.init
    const bytes = Buffer.concat(Array.from({ length: total_chunks }, (_, index) => upload.chunks.get(index) ?? Buffer.alloc(0)))
    if (bytes.length !== total_size || createHash('md5').update(bytes).digest('hex') !== md5)
      return { errcode: 40_058, errmsg: 'invalid md5' }
    const media_id = `bot-media-${this.uploads.size + 1}`
    this.uploads.set(media_id, { name: filename, type, bytes })
    return { body: { type, media_id, created_at: '1700000000' } }
  }
}
