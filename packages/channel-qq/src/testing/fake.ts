/**
 * QQ's platform for bots on loopback: tokens, messages with their windows and quotas, files, presses and the gateway. Requests, answers and
 * codes follow https://bot.q.qq.com/wiki/develop/api-v2/ (such as autogen/api/v2_users_user_openid_messages.post.html).
 */
import { hash, randomUUID } from 'node:crypto'
import { type FakeProvider, type ProviderReply, type ProviderRequest, startFakeProvider } from '@sluice/testkit/fake-provider'
import * as v from 'valibot'
import { FakeGateway } from './fake-gateway.ts'

export const BOT = { app_id: '102000001', app_secret: 'naOC0ocQE3shWLAfffVLB1rhYPG7' }

const TOKEN_SECS = 7200
const MINUTE_MS = 60_000
/** Proactive messages to one person or group in a minute. */
const MINUTE_MAX = 20
const BLOCK_BYTES = 5_000_000
const FILE_BYTES_MAX = 200 * 1024 * 1024
const WINDOWS = { user: { ms: 3_600_000, count: 4 }, group: { ms: 300_000, count: 5 } }

/** A message that a person writes. Members of `data` replace members of the event. */
export interface Said {
  readonly text: string
  readonly sender?: string
  readonly group?: string
  readonly data?: object
}

/** A message that QQ accepted. */
export interface QqSent {
  readonly kind: 'user' | 'group'
  readonly to: string
  readonly id: string
  readonly text: string
  readonly markdown: boolean
  /** The message that it answers; undefined for a proactive one. */
  readonly answers?: string
  readonly fileInfo?: string
  readonly buttons: readonly { readonly id: string; readonly label: string; readonly value: string }[]
}

export interface QqFake extends FakeProvider {
  readonly gateway: FakeGateway
  readonly sent: readonly QqSent[]
  /** Files that people sent, by name. */
  readonly files: Map<string, Uint8Array>
  readonly uploads: ReadonlyMap<string, { readonly name: string; readonly type: number; readonly bytes: Buffer }>
  readonly granted: number
  /** Presses that were acknowledged. */
  readonly acknowledged: readonly string[]
  /** False: the platform accepts only answers. */
  acceptsProactive: boolean
  say(said: Said): string
  /** The event of a message, as the gateway or the webhook delivers it. */
  event(said: Said): { readonly id: string; readonly type: string; readonly data: object }
  /** Presses the button with this value as a person. */
  press(value: string, person: string): void
  endTokens(): void
  changeSecret(): void
}

export interface QqFakeOptions {
  nowMs?(): number
  readonly keepMs?: number
}

const button = v.strictObject({
  id: v.string(),
  render_data: v.strictObject({
    label: v.pipe(v.string(), v.minLength(1), v.maxLength(10)),
    visited_label: v.string(),
    style: v.picklist([0, 1, 2, 3]),
  }),
  action: v.strictObject({
    type: v.literal(1),
    permission: v.strictObject({ type: v.picklist([0, 1, 2]) }),
    data: v.pipe(v.string(), v.minLength(1)),
    unsupport_tips: v.optional(v.string()),
  }),
})
const answers = { msg_id: v.optional(v.string()), msg_seq: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1))) }
const messageSchema = v.variant('msg_type', [
  v.strictObject({ ...answers, msg_type: v.literal(0), content: v.pipe(v.string(), v.minLength(1)) }),
  v.strictObject({
    ...answers,
    msg_type: v.literal(2),
    markdown: v.strictObject({ content: v.pipe(v.string(), v.minLength(1)) }),
    keyboard: v.optional(v.strictObject({ content: v.strictObject({ rows: v.array(v.strictObject({ buttons: v.array(button) })) }) })),
  }),
  v.strictObject({ ...answers, msg_type: v.literal(7), content: v.optional(v.string()), media: v.strictObject({ file_info: v.string() }) }),
])
type Message = v.InferOutput<typeof messageSchema>
const prepareSchema = v.strictObject({
  file_type: v.picklist([1, 2, 3, 4]),
  file_size: v.pipe(v.string(), v.regex(/^\d+$/)),
  file_name: v.string(),
  md5: v.string(),
  sha1: v.string(),
  md5_10m: v.string(),
})
const finishSchema = v.strictObject({ upload_id: v.string(), part_index: v.number(), block_size: v.string(), md5: v.string() })
const joinSchema = v.strictObject({ file_type: v.number(), file_name: v.string(), srv_send_msg: v.literal(false), upload_id: v.string() })

interface Upload {
  readonly owner: string
  readonly name: string
  readonly type: number
  readonly size: number
  readonly md5: string
  readonly sha1: string
  readonly md5_10m: string
  readonly parts: Map<number, { bytes: Buffer; isFinished: boolean }>
}

const refusal = (status: number, code: number, message: string): ProviderReply => ({
  status,
  body: { message, code, err_code: code, trace_id: 'aaaa0000bbbb' },
})

export async function startQqFake({ nowMs = Date.now, keepMs = 300_000 }: QqFakeOptions = {}): Promise<QqFake> {
  const tokens = new Map<string, number>()
  const written = new Map<
    string,
    { readonly kind: 'user' | 'group'; readonly to: string; readonly atMs: number; readonly numbers: Set<number> }
  >()
  const proactiveAtMs = new Map<string, number[]>()
  const [sent, acknowledged]: [QqSent[], string[]] = [[], []]
  const files = new Map<string, Uint8Array>()
  const pending = new Map<string, Upload>()
  const uploads = new Map<string, { name: string; type: number; bytes: Buffer; owner: string }>()
  let secret = BOT.app_secret
  let granted = 0
  let messages = 0

  const isToken = (authorization: string | null): boolean => nowMs() < (tokens.get(authorization ?? '') ?? 0)
  const gateway = new FakeGateway({ nowMs, isToken, keepMs, heartbeatMs: 45_000 })

  function grant(json: unknown): ProviderReply {
    const { appId, clientSecret } = (json ?? {}) as { appId?: string; clientSecret?: string }
    if (appId !== BOT.app_id || clientSecret !== secret) return { status: 200, body: { code: 100_007, message: 'appid invalid' } }
    granted += 1
    tokens.set(`QQBot token-${granted}`, nowMs() + TOKEN_SECS * 1000)
    return { status: 200, body: { access_token: `token-${granted}`, expires_in: String(TOKEN_SECS) } }
  }

  /** Checks an answer. Returns its refusal. */
  function refuseAnswer(kind: 'user' | 'group', to: string, { msg_id = '', msg_seq = 1 }: Message): ProviderReply | undefined {
    const message = written.get(msg_id)
    if (message?.kind !== kind || message.to !== to) return refusal(400, 40_034_024, '请求参数msg_id无效或越权')
    const { ms, count } = WINDOWS[kind]
    if (message.numbers.has(msg_seq)) return refusal(400, 40_054_005, '消息被去重，请检查请求msgseq')
    if (nowMs() - message.atMs > ms) return refusal(400, 40_034_005, '回复消息msg_id已过期')
    if (message.numbers.size >= count) return refusal(400, 40_034_128, '被动回复时间或次数超限')
    message.numbers.add(msg_seq)
    return undefined
  }

  function refuseProactive(to: string): ProviderReply | undefined {
    if (!fake.acceptsProactive) return refusal(400, 40_034_105, '主动消息发送失败，无权限')
    const recent = (proactiveAtMs.get(to) ?? []).filter((atMs) => nowMs() - atMs < MINUTE_MS)
    if (recent.length >= MINUTE_MAX) return refusal(400, 40_034_100, '主动消息发送超过频控限制')
    proactiveAtMs.set(to, [...recent, nowMs()])
    return undefined
  }

  function post(kind: 'user' | 'group', to: string, json: unknown): ProviderReply {
    const parsed = v.safeParse(messageSchema, json)
    if (!parsed.success) return refusal(400, 22_006, '消息类型与内容不匹配')
    const message = parsed.output
    const fileInfo = message.msg_type === 7 ? message.media.file_info : undefined
    if (fileInfo !== undefined && uploads.get(fileInfo)?.owner !== kind) return refusal(400, 304_080, '文件信息无效')
    const refused = message.msg_id === undefined ? refuseProactive(to) : refuseAnswer(kind, to, message)
    if (refused) return refused
    const id = `ROBOT1.0_${randomUUID()}`
    const rows = message.msg_type === 2 ? (message.keyboard?.content.rows ?? []) : []
    sent.push({
      kind,
      to,
      id,
      text: message.msg_type === 2 ? message.markdown.content : (message.content ?? ''),
      markdown: message.msg_type === 2,
      ...(message.msg_id !== undefined && { answers: message.msg_id }),
      ...(fileInfo !== undefined && { fileInfo }),
      buttons: rows.flatMap(({ buttons }) =>
        buttons.map((each) => ({ id: each.id, label: each.render_data.label, value: each.action.data })),
      ),
    })
    return { status: 200, body: { id, timestamp: new Date(nowMs()).toISOString(), ext_info: { ref_idx: 'REFIDX_x' } } }
  }

  function prepare(owner: string, json: unknown): ProviderReply {
    const parsed = v.safeParse(prepareSchema, json)
    if (!parsed.success) return refusal(400, 10_000, '不支持的操作')
    const { file_type, file_name, file_size, ...sums } = parsed.output
    const size = Number(file_size)
    if (size > FILE_BYTES_MAX) return refusal(400, 850_031, '上传文件超过大小限制')
    const upload_id = `upload_${randomUUID()}`
    const parts = Array.from({ length: Math.ceil(size / BLOCK_BYTES) }, (_, index) => ({
      index: index + 1,
      presigned_url: `${fake.url}/cos/${upload_id}/${index + 1}?sign=presigned-secret`,
      block_size: String(Math.min(BLOCK_BYTES, size - index * BLOCK_BYTES)),
    }))
    pending.set(upload_id, { owner, name: file_name, type: file_type, size, ...sums, parts: new Map() })
    return {
      status: 200,
      body: { upload_id, block_size: String(BLOCK_BYTES), parts, upload_config: { concurrency: 1, retry_timeout: 300, retry_delay: 1 } },
    }
  }

  function finish(json: unknown): ProviderReply {
    const parsed = v.safeParse(finishSchema, json)
    const part = parsed.success ? pending.get(parsed.output.upload_id)?.parts.get(parsed.output.part_index) : undefined
    if (
      !parsed.success ||
      !part ||
      parsed.output.md5 !== hash('md5', part.bytes) ||
      Number(parsed.output.block_size) !== part.bytes.length
    ) {
      return refusal(400, 40_093_001, '文件上传失败，请重试')
    }
    part.isFinished = true
    return { status: 200, body: {} }
  }

  function join(owner: string, json: unknown): ProviderReply {
    const parsed = v.safeParse(joinSchema, json)
    const upload = parsed.success ? pending.get(parsed.output.upload_id) : undefined
    if (upload?.owner !== owner || ![...upload.parts.values()].every(({ isFinished }) => isFinished))
      return refusal(400, 10_000, '不支持的操作')
    const bytes = Buffer.concat([...upload.parts].toSorted(([a], [b]) => a - b).map(([, part]) => part.bytes))
    const sums = [hash('md5', bytes), hash('sha1', bytes), hash('md5', bytes.subarray(0, 10_002_432))]
    if (bytes.length !== upload.size || sums.join() !== [upload.md5, upload.sha1, upload.md5_10m].join())
      return refusal(400, 40_093_001, '文件上传失败')
    const file_info = `FILE${uploads.size + 1}`
    uploads.set(file_info, { name: upload.name, type: upload.type, bytes, owner })
    return { status: 200, body: { file_uuid: randomUUID(), file_info, ttl: 300 } }
  }

  function put({ path, query, body }: ProviderRequest): ProviderReply {
    const [, uploadId = '', part = ''] = /^\/cos\/([\w-]+)\/(\d+)$/.exec(path) ?? []
    const upload = pending.get(uploadId)
    if (!upload || query.get('sign') !== 'presigned-secret') return { status: 403 }
    upload.parts.set(Number(part), { bytes: body, isFinished: false })
    return { status: 200 }
  }

  function authorized({ method, path, json }: ProviderRequest): ProviderReply {
    const url = `${fake.url.replace('http', 'ws')}/websocket/`
    if (method === 'GET' && path === '/gateway') return { status: 200, body: { url } }
    const session_start_limit = { total: 1000, remaining: 1000, reset_after: 86_400_000, max_concurrency: 1 }
    if (method === 'GET' && path === '/gateway/bot') return { status: 200, body: { url, shards: 1, session_start_limit } }
    if (method === 'GET' && path === '/users/@me') return { status: 200, body: { id: '6158788878435714165', username: 'sluice' } }
    const [, interaction] = /^\/interactions\/([\w-]+)$/.exec(path) ?? []
    if (method === 'PUT' && interaction !== undefined) {
      acknowledged.push(interaction)
      return { status: 200, body: {} }
    }
    const [, kinds, to = '', action] =
      /^\/v2\/(users|groups)\/([^/]+)\/(messages|upload_prepare|upload_part_finish|files)$/.exec(path) ?? []
    if (method !== 'POST' || kinds === undefined) return refusal(404, 11_251, 'no such method')
    const kind = kinds === 'users' ? 'user' : 'group'
    if (action === 'messages') return post(kind, decodeURIComponent(to), json)
    if (action === 'upload_prepare') return prepare(kind, json)
    return action === 'files' ? join(kind, json) : finish(json)
  }

  function answer(request: ProviderRequest): ProviderReply {
    const { method, path, query, json, headers } = request
    if (method === 'POST' && path === '/app/getAppAccessToken') return grant(json)
    if (method === 'PUT' && path.startsWith('/cos/')) return put(request)
    if (method === 'GET' && path === '/download') {
      const bytes = files.get(query.get('name') ?? '')
      return bytes ? { status: 200, headers: { 'content-type': 'image/png' }, body: bytes } : { status: 404 }
    }
    if (!isToken(headers.get('authorization'))) return refusal(401, 11_244, 'token not exist or expire')
    return authorized(request)
  }

  const provider = await startFakeProvider(answer, { upgrade: gateway.upgrade })
  const fake: QqFake = {
    ...provider,
    gateway,
    sent,
    files,
    uploads,
    acknowledged,
    acceptsProactive: true,
    get granted() {
      return granted
    },
    event({ text, sender = 'OPENID_ADA', group, data }) {
      messages += 1
      const id = `ROBOT1.0_message-${messages}`
      const kind = group === undefined ? 'user' : 'group'
      written.set(id, { kind, to: group ?? sender, atMs: nowMs(), numbers: new Set() })
      const common = { id, content: group === undefined ? text : ` ${text}`, timestamp: new Date(nowMs()).toISOString(), message_type: 0 }
      return group === undefined
        ? {
            id,
            type: 'C2C_MESSAGE_CREATE',
            data: { ...common, author: { id: sender, user_openid: sender, union_openid: sender }, ...data },
          }
        : {
            id,
            type: 'GROUP_AT_MESSAGE_CREATE',
            data: { ...common, group_id: group, group_openid: group, author: { id: sender, member_openid: sender }, ...data },
          }
    },
    say(said) {
      const { id, type, data } = fake.event(said)
      gateway.dispatch(type, data)
      return id
    },
    press(value, person) {
      const message = sent.findLast(({ buttons }) => buttons.some((each) => each.value === value))
      const pressed = message?.buttons.find((each) => each.value === value)
      if (!message || !pressed) throw new Error(`no message has a button ${value}`)
      const where = message.kind === 'group' ? { group_openid: message.to, group_member_openid: person } : { user_openid: person }
      const resolved = { button_id: pressed.id, button_data: pressed.value, feature_id: '' }
      gateway.dispatch('INTERACTION_CREATE', {
        id: randomUUID(),
        type: 11,
        scene: message.kind === 'group' ? 'group' : 'c2c',
        chat_type: message.kind === 'group' ? 1 : 2,
        timestamp: new Date(nowMs()).toISOString(),
        ...where,
        data: { type: 11, resolved },
        version: 1,
        application_id: BOT.app_id,
      })
    },
    endTokens: () => tokens.clear(),
    changeSecret() {
      secret = 'another-secret-0123456789'
      tokens.clear()
    },
    async close() {
      gateway.close()
      await provider.close()
    },
  }
  return fake
}

if (import.meta.main) console.log((await startQqFake()).url)
