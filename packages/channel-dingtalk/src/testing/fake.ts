/**
 * DingTalk on loopback: stream mode, replies over sessions, messages of the robot and files. Requests, answers and codes follow
 * https://open.dingtalk.com/document (orgapp/receive-message, development/the-robot-sends-a-group-message,
 * development/chatbots-send-one-on-one-chat-messages-in-batches, development/upload-media-files) and of the models in
 * @alicloud/dingtalk (robot_1_0). The documentation names no code for a session that has ended; the fake uses that of an unknown token
 * of a webhook.
 */
import { randomUUID } from 'node:crypto'
import { type FakeProvider, type ProviderReply, type ProviderRequest, startFakeProvider } from '@sluice/testkit/fake-provider'
import * as v from 'valibot'
import { FakeStream, MESSAGES } from './fake-stream.ts'

export const CLIENT = { client_id: 'dingclient01', client_secret: 'dingtalk-client-secret-01' }
const ROBOT_USER = '$:LWCP_v1:$robot'
const SESSION_MS = 90 * 60_000
const TOKEN_SECS = 7200
const BODY_BYTES_MAX = 20_000
const MINUTE_MAX = 20
const FILE_BYTES_MAX = 20 * 1024 * 1024

/** A message that a person writes. Members of `data` replace members of the message. */
export interface Said {
  readonly text: string
  readonly sender?: string
  /** The id of the group's conversation; a direct conversation unless given. */
  readonly group?: string
  readonly data?: object
}

/** A message that DingTalk accepted. */
export interface DingtalkSent {
  readonly via: 'session' | 'person' | 'group'
  /** The conversation. */
  readonly to: string
  readonly text: string
  readonly title?: string
  readonly mentions?: readonly string[]
  readonly mediaId?: string
  readonly fileName?: string
}

export interface DingtalkFake extends FakeProvider {
  readonly stream: FakeStream
  readonly sent: readonly DingtalkSent[]
  /** Files that people sent, by download code. */
  readonly files: Map<string, Uint8Array>
  readonly uploads: ReadonlyMap<string, { readonly name: string; readonly bytes: Buffer; readonly type: string }>
  /** How many access tokens were granted. */
  readonly granted: number
  /** People in no organisation, people whose messages are limited, and groups without the robot. */
  readonly refused: { readonly unknown: Set<string>; readonly limited: Set<string>; readonly groups: Set<string> }
  /** Writes a message. Returns its id. */
  say(said: Said): string
  /** Ends all sessions and tokens. */
  endSessions(): void
  endTokens(): void
  /** Replaces the secret of the app. */
  changeSecret(): void
}

export interface DingtalkFakeOptions {
  nowMs?(): number
  /** See `FakeStreamOptions`. Default: 60 s. */
  readonly keepMs?: number
}

const connectSchema = v.looseObject({
  clientId: v.string(),
  clientSecret: v.string(),
  subscriptions: v.array(v.strictObject({ type: v.picklist(['EVENT', 'CALLBACK']), topic: v.string() })),
})
const replySchema = v.strictObject({
  msgtype: v.literal('markdown'),
  markdown: v.strictObject({ title: v.pipe(v.string(), v.minLength(1)), text: v.pipe(v.string(), v.minLength(1)) }),
  at: v.optional(v.strictObject({ atUserIds: v.array(v.string()), isAtAll: v.literal(false) })),
})
const robotMessage = { robotCode: v.string(), msgKey: v.string(), msgParam: v.string() }
const personSchema = v.strictObject({ ...robotMessage, userIds: v.pipe(v.array(v.string()), v.minLength(1), v.maxLength(20)) })
const groupSchema = v.strictObject({ ...robotMessage, openConversationId: v.string() })
const PARAMS: Readonly<Record<string, v.GenericSchema<unknown, Readonly<Record<string, string>>>>> = {
  sampleText: v.strictObject({ content: v.string() }),
  sampleMarkdown: v.strictObject({ title: v.pipe(v.string(), v.minLength(1)), text: v.pipe(v.string(), v.minLength(1)) }),
  sampleImageMsg: v.strictObject({ photoURL: v.string() }),
  sampleFile: v.strictObject({
    mediaId: v.string(),
    fileName: v.string(),
    fileType: v.picklist(['xlsx', 'pdf', 'zip', 'rar', 'doc', 'docx']),
  }),
}

const refusal = (status: number, code: string, message: string): ProviderReply => ({
  status,
  body: { code, message, requestid: 'D1B8A4E0-0000-7C6C-9B3E-0123456789AB' },
})
const old = (errcode: number, errmsg: string, more: object = {}): ProviderReply => ({ status: 200, body: { errcode, errmsg, ...more } })

export async function startDingtalkFake({ nowMs = Date.now, keepMs = 60_000 }: DingtalkFakeOptions = {}): Promise<DingtalkFake> {
  const stream = new FakeStream({ nowMs, keepMs })
  const sent: DingtalkSent[] = []
  const files = new Map<string, Uint8Array>()
  const uploads = new Map<string, { name: string; bytes: Buffer; type: string }>()
  const sessions = new Map<string, { readonly to: string; readonly untilMs: number }>()
  const tokens = new Map<string, number>()
  const writtenAtMs = new Map<string, number[]>()
  const refused = { unknown: new Set<string>(), limited: new Set<string>(), groups: new Set<string>() }
  let secret = CLIENT.client_secret
  let granted = 0
  let messages = 0

  const isToken = (token: string | null): boolean => nowMs() < (tokens.get(token ?? '') ?? 0)
  const isTooFast = (to: string): boolean => {
    const recent = (writtenAtMs.get(to) ?? []).filter((atMs) => nowMs() - atMs < 60_000)
    writtenAtMs.set(to, [...recent, nowMs()])
    return recent.length >= MINUTE_MAX
  }

  function connect(json: unknown): ProviderReply {
    const { success, output } = v.safeParse(connectSchema, json)
    if (!success) return refusal(400, 'MissingParameter', 'subscriptions is mandatory')
    if (output.clientId !== CLIENT.client_id || output.clientSecret !== secret) return refusal(401, 'authFailed', '鉴权失败')
    if (!output.subscriptions.some(({ type, topic }) => type === 'CALLBACK' && topic === MESSAGES))
      return refusal(400, 'param.error', 'no topic')
    return { status: 200, body: { endpoint: `${fake.url.replace('http', 'ws')}/connect`, ticket: stream.ticket() } }
  }

  function grant(json: unknown): ProviderReply {
    const { appKey, appSecret } = (json ?? {}) as { appKey?: string; appSecret?: string }
    if (appKey !== CLIENT.client_id || appSecret !== secret)
      return refusal(400, 'invalidClientIdOrSecret', '无效的clientId或者clientSecret')
    granted += 1
    const token = `token-${granted}`
    tokens.set(token, nowMs() + TOKEN_SECS * 1000)
    return { status: 200, body: { accessToken: token, expireIn: TOKEN_SECS } }
  }

  function reply({ query, body, json }: ProviderRequest): ProviderReply {
    const session = sessions.get(query.get('session') ?? '')
    if (!session || nowMs() > session.untilMs) return old(300_005, 'token is not exist')
    if (body.length > BODY_BYTES_MAX) return old(460_101, 'message too long, exceed 20000 bytes')
    const { success, output } = v.safeParse(replySchema, json)
    if (!success) return old(40_035, '缺少参数 json')
    if (session.to.startsWith('cid') && isTooFast(session.to)) return old(130_101, 'send too fast, exceed 20 times per minute')
    sent.push({ via: 'session', to: session.to, ...output.markdown, mentions: output.at?.atUserIds ?? [] })
    return old(0, 'ok')
  }

  function robot(via: 'person' | 'group', json: unknown): ProviderReply {
    const parsed = via === 'person' ? v.safeParse(personSchema, json) : v.safeParse(groupSchema, json)
    if (!parsed.success) return refusal(400, 'MissingParameter', 'a parameter is mandatory')
    const { robotCode, msgKey, msgParam } = parsed.output
    if (robotCode !== CLIENT.client_id) return refusal(400, 'robot.not.exist', 'robot 不存在')
    const schema = PARAMS[msgKey]
    const param = schema && v.safeParse(schema, JSON.parse(msgParam))
    if (!param?.success) return refusal(400, 'invalidParameter.msgParam.invalid', '无效的消息模板参数')
    const { text = '', content = text, title, photoURL, mediaId = photoURL, fileName } = param.output
    if (mediaId !== undefined && !uploads.has(mediaId)) return refusal(400, 'invalidParameter.mediaId', '无效的媒体文件')
    const to = 'userIds' in parsed.output ? (parsed.output.userIds[0] ?? '') : parsed.output.openConversationId
    if (via === 'group' && refused.groups.has(to)) return refusal(400, 'miss.robot', '机器人不在群内')
    const unknown = refused.unknown.has(to)
    const limited = refused.limited.has(to)
    const processQueryKey = randomUUID()
    if (!unknown && !limited) {
      sent.push({
        via,
        to,
        text: content,
        ...(title !== undefined && { title }),
        ...(mediaId !== undefined && { mediaId }),
        ...(fileName !== undefined && { fileName }),
      })
    }
    const people = via === 'group' ? {} : { invalidStaffIdList: unknown ? [to] : [], flowControlledStaffIdList: limited ? [to] : [] }
    return { status: 200, body: { processQueryKey, ...people } }
  }

  async function upload({ query, body, headers }: ProviderRequest): Promise<ProviderReply> {
    if (!isToken(query.get('access_token'))) return old(40_014, '不合法的access_token')
    const form = await new Response(new Uint8Array(body), { headers: { 'content-type': headers.get('content-type') ?? '' } })
      .formData()
      .catch(() => new FormData())
    const media = form.get('media')
    if (!(media instanceof File) || media.name === '') return old(40_035, '缺少参数 media')
    const bytes = Buffer.from(await media.arrayBuffer())
    if (bytes.length > FILE_BYTES_MAX) return old(40_006, '不合法的文件大小')
    const mediaId = `@lADP${uploads.size + 1}`
    uploads.set(mediaId, { name: media.name, bytes, type: query.get('type') ?? '' })
    return old(0, 'ok', { media_id: mediaId, type: query.get('type'), created_at: nowMs() })
  }

  function authorized(request: ProviderRequest): ProviderReply {
    const { path, json } = request
    if (!isToken(request.headers.get('x-acs-dingtalk-access-token'))) return refusal(400, 'InvalidAuthentication', '不合法的access_token')
    if (path === '/v1.0/robot/oToMessages/batchSend') return robot('person', json)
    if (path === '/v1.0/robot/groupMessages/send') return robot('group', json)
    const { downloadCode, robotCode } = (json ?? {}) as { downloadCode?: string; robotCode?: string }
    if (path !== '/v1.0/robot/messageFiles/download') return refusal(404, 'InvalidAction.NotFound', 'Specified api is not found')
    if (robotCode !== CLIENT.client_id || !files.has(downloadCode ?? '')) return refusal(400, 'unknownError', '未知错误')
    return { status: 200, body: { downloadUrl: `${fake.url}/files?${new URLSearchParams({ code: downloadCode ?? '' })}` } }
  }

  async function answer(request: ProviderRequest): Promise<ProviderReply> {
    const { path, query, json, method } = request
    if (method === 'GET' && path === '/files') {
      const bytes = files.get(query.get('code') ?? '')
      return bytes ? { status: 200, headers: { 'content-type': 'image/png' }, body: bytes } : { status: 404 }
    }
    if (method !== 'POST') return refusal(405, 'UnsupportedHTTPMethod', 'method not allowed')
    if (path === '/v1.0/gateway/connections/open') return connect(json)
    if (path === '/v1.0/oauth2/accessToken') return grant(json)
    if (path === '/robot/sendBySession') return reply(request)
    if (path === '/media/upload') return upload(request)
    return authorized(request)
  }

  const provider = await startFakeProvider(answer, { upgrade: stream.upgrade })
  const fake: DingtalkFake = {
    ...provider,
    stream,
    sent,
    files,
    uploads,
    refused,
    get granted() {
      return granted
    },
    say({ text, sender = 'staff01', group, data }) {
      messages += 1
      const msgId = `msg${messages}==`
      const session = randomUUID()
      sessions.set(session, { to: group ?? sender, untilMs: nowMs() + SESSION_MS })
      stream.push(`push_${messages}`, {
        conversationId: group ?? `cid-of-${sender}`,
        chatbotCorpId: 'dingcorp01',
        chatbotUserId: ROBOT_USER,
        msgId,
        senderNick: 'Ada',
        isAdmin: false,
        senderStaffId: sender,
        sessionWebhookExpiredTime: nowMs() + SESSION_MS,
        createAt: nowMs(),
        senderCorpId: 'dingcorp01',
        conversationType: group === undefined ? '1' : '2',
        senderId: `$:LWCP_v1:$${sender}`,
        ...(group !== undefined && { conversationTitle: 'Ops', isInAtList: true, atUsers: [{ dingtalkId: ROBOT_USER }] }),
        sessionWebhook: `https://oapi.dingtalk.com/robot/sendBySession?session=${session}`,
        text: { content: group === undefined ? text : ` ${text}` },
        robotCode: CLIENT.client_id,
        msgtype: 'text',
        ...data,
      })
      return msgId
    },
    endSessions: () => sessions.clear(),
    endTokens: () => tokens.clear(),
    changeSecret() {
      secret = 'dingtalk-client-secret-02'
      tokens.clear()
    },
    async close() {
      stream.close()
      await provider.close()
    },
  }
  return fake
}

if (import.meta.main) console.log((await startDingtalkFake()).url)
