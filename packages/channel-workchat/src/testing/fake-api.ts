/**
 * The methods of the fake's API, with the checks and the error numbers of the platform's documentation: "Send message", "Reply message",
 * "Get the content of a specified message", "Update message card", "Get chat history", "Get resource files of a message", "Upload image", "Upload file" and "Add reaction" under
 * https://open.larksuite.com/document/server-docs/im-v1.
 */
import { randomUUID } from 'node:crypto'
import type { ProviderReply, ProviderRequest } from '@sluice/testkit/fake-provider'
import type { WorkchatChats, WorkchatMessage } from './fake-chats.ts'

export interface WorkchatState {
  readonly appId: string
  readonly chats: WorkchatChats
  readonly botOpenId: string
  readonly reactions: { readonly message: string; readonly emoji: string }[]
  /** The files by key. */
  readonly files: Map<string, { readonly name: string; readonly bytes: Uint8Array; readonly mime: string }>
  /** The ids of sent messages by their uuid. */
  readonly uuids: Map<string, { readonly id: string; readonly atMs: number }>
  readonly tokens: Set<string>
  nowMs(): number
}

const CARD_BYTES_MAX = 30 * 1024
const TEXT_BYTES_MAX = 150 * 1024
const UUID_CHARS_MAX = 50
const UUID_MS = 3_600_000
const FILE_BYTES_MAX = 30 * 1024 * 1024
const IMAGE_BYTES_MAX = 10 * 1024 * 1024
const PAGE_MAX = 50
const EDIT_MS = 14 * 86_400_000
const FILES_MAX = 10_000
const FILE_TYPES = ['opus', 'mp4', 'pdf', 'doc', 'xls', 'ppt', 'stream']
/** Tags that a card of schema 2.0 may have, as far as the channel uses them. */
const CARD_TAGS = ['markdown', 'column_set', 'column', 'button', 'plain_text', 'img']

class Refused extends Error {
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

type Body = Readonly<Record<string, unknown>>

const ok = (data: object = {}): ProviderReply => ({ status: 200, body: { code: 0, msg: 'success', data } })

/** Answers a call below `/open-apis`; undefined for an unknown path. */
export async function answerApi(state: WorkchatState, path: string, request: ProviderRequest): Promise<ProviderReply | undefined> {
  try {
    const token = /^Bearer (.+)$/.exec(request.headers.get('authorization') ?? '')?.[1]
    if (token === undefined) throw new Refused(99991661, 'Missing access token for authorization')
    if (!state.tokens.has(token)) throw new Refused(99991663, 'Invalid access token for authorization')
    return await answerCall(state, path, request)
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    return { status: 400, body: { code: error.code, msg: error.message, error: { log_id: 'fake' } } }
  }
}

async function answerCall(state: WorkchatState, path: string, request: ProviderRequest): Promise<ProviderReply | undefined> {
  const call = `${request.method} ${path}`
  const body = (request.json ?? {}) as Body
  if (call === 'GET /bot/v3/info')
    return { status: 200, body: { code: 0, msg: 'ok', bot: { open_id: state.botOpenId, app_name: 'Sluice' } } }
  const [, user] = /^GET \/contact\/v3\/users\/([^/]+)$/.exec(call) ?? []
  if (user !== undefined) return person(user, request.query)
  if (call === 'POST /im/v1/messages') return sendMessage(state, request, body)
  if (call === 'GET /im/v1/messages') return history(state, request.query)
  if (call === 'POST /im/v1/images') return uploadImage(state, request)
  if (call === 'POST /im/v1/files') return uploadFile(state, request)
  const [, id = '', rest = ''] = /^\/im\/v1\/messages\/([^/]+)(\/.*)?$/.exec(path) ?? []
  if (id === '') return undefined
  if (call.startsWith('POST ') && rest === '/reply') return reply(state, decodeURIComponent(id), body)
  if (call.startsWith('GET ') && rest === '') return one(state, decodeURIComponent(id))
  if (call.startsWith('PATCH ') && rest === '') return updateCard(state, decodeURIComponent(id), body)
  if (call.startsWith('POST ') && rest === '/reactions') return react(state, decodeURIComponent(id), body)
  const [, key = ''] = /^\/resources\/([^/]+)$/.exec(rest) ?? []
  return call.startsWith('GET ') && key !== '' ? resource(state, decodeURIComponent(id), key, request.query) : undefined
}

/** "Obtain user information": without the right to see the person, the platform refuses. */
function person(user: string, query: URLSearchParams): ProviderReply {
  if (query.get('user_id_type') !== 'open_id') throw new Refused(99992356, 'id not exist')
  if (!user.startsWith('ou_')) throw new Refused(41050, 'no user authority error')
  return ok({ user: { open_id: user, name: `Name of ${user}` } })
}

function sendMessage(state: WorkchatState, { query }: ProviderRequest, body: Body): ProviderReply {
  if (query.get('receive_id_type') !== 'chat_id')
    throw new Refused(230001, 'Your request contains an invalid request parameter, receive_id_type')
  const chat = String(body.receive_id ?? '')
  if (state.chats.typeOf(chat) === undefined) throw new Refused(230002, 'Bot/User can NOT be out of the chat.')
  return keep(state, body, chat, {})
}

function reply(state: WorkchatState, id: string, body: Body): ProviderReply {
  const parent = state.chats.find(id)
  if (!parent) throw new Refused(230001, 'Your request contains an invalid request parameter, message_id')
  if (parent.deleted) throw new Refused(230011, 'The message was withdrawn.')
  const inThread = body.reply_in_thread === true || parent.thread_id !== undefined
  return keep(state, body, parent.chat_id, { parent: id, inThread })
}

function keep(state: WorkchatState, body: Body, chat: string, more: { parent?: string; inThread?: boolean }): ProviderReply {
  const { uuid } = body
  if (uuid !== undefined && (typeof uuid !== 'string' || uuid.length > UUID_CHARS_MAX)) throw new Refused(230001, 'invalid uuid')
  checkContent(state, body)
  const known = typeof uuid === 'string' ? state.uuids.get(uuid) : undefined
  if (known && state.nowMs() - known.atMs < UUID_MS) return ok(shown(state.chats.find(known.id)))
  const message = state.chats.add(chat, {
    msg_type: String(body.msg_type),
    sender: { id: state.appId, id_type: 'app_id', sender_type: 'app' },
    body: { content: String(body.content) },
    ...more,
  })
  if (typeof uuid === 'string') state.uuids.set(uuid, { id: message.message_id, atMs: state.nowMs() })
  return ok(shown(message))
}

const shown = (message: WorkchatMessage | undefined): object => ({ ...message })

function checkContent(state: WorkchatState, { msg_type: type, content }: Body): void {
  const json = parsedContent(content)
  const bytes = Buffer.byteLength(String(content))
  if (type === 'text') {
    if (typeof json.text !== 'string' || json.text === '') throw new Refused(230001, 'content of text is empty')
    if (bytes > TEXT_BYTES_MAX) throw new Refused(230025, 'The length of the message content reaches its limit.')
  } else if (type === 'interactive') {
    if (bytes > CARD_BYTES_MAX) throw new Refused(230025, 'The length of the message content reaches its limit.')
    checkCard(json)
  } else if (type === 'image') {
    if (!state.files.has(String(json.image_key))) throw new Refused(230001, 'invalid image_key')
  } else if (type === 'file' || type === 'audio' || type === 'media') {
    if (!state.files.has(String(json.file_key))) throw new Refused(230001, 'invalid file_key')
  } else throw new Refused(230001, 'invalid msg_type')
}

function parsedContent(content: unknown): Body {
  try {
    if (typeof content === 'string') return JSON.parse(content) as Body
  } catch {
    // Refused below.
  }
  throw new Refused(230001, 'content is not in JSON format')
}

function checkCard(card: Body): void {
  const refuse = (why: string): never => {
    throw new Refused(230099, `Failed to create card content, ext=ErrCode: 11310; ErrMsg: ${why}`)
  }
  if (card.schema !== '2.0') refuse('unknown schema')
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    const element = value as Body
    if (typeof element.tag === 'string' && !CARD_TAGS.includes(element.tag)) refuse(`unknown tag ${element.tag}`)
    // A picture in Markdown must be a key of an uploaded one.
    if (element.tag === 'markdown' && /!\[[^\]]*\]\((?!img_)/.test(String(element.content))) refuse('image key is invalid')
    if (element.tag === 'markdown' && /<at id=all>/.test(String(element.content))) refuse('at all is not permitted for this group')
    for (const member of Object.values(element)) visit(member)
  }
  const { elements } = (card.body ?? {}) as { elements?: unknown[] }
  if (!elements?.length) refuse('body has no elements')
  visit(card)
}

function updateCard(state: WorkchatState, id: string, { content }: Body): ProviderReply {
  const message = state.chats.find(id)
  if (!message) throw new Refused(230001, 'invalid message_id')
  if (message.deleted) throw new Refused(230011, 'The message was withdrawn.')
  if (message.sender.sender_type !== 'app') throw new Refused(230012, 'Bot is NOT the sender of the message.')
  if (message.msg_type !== 'interactive') throw new Refused(230054, 'This operation is not supported for this message type.')
  if (state.nowMs() - Number(message.create_time) > EDIT_MS) throw new Refused(230031, 'The message has exceeded the modification time.')
  checkContent(state, { msg_type: 'interactive', content })
  state.chats.replace({ ...message, body: { content: String(content) }, updated: true, update_time: state.chats.changedAt() })
  return ok()
}

function react(state: WorkchatState, id: string, body: Body): ProviderReply {
  const message = state.chats.find(id)
  const emoji = (body.reaction_type as Body | undefined)?.emoji_type
  if (!message) throw new Refused(231003, 'The message is not found, please make sure that the message id is correct.')
  if (message.deleted) throw new Refused(231004, 'The message was withdrawn.')
  if (typeof emoji !== 'string' || !/^[A-Za-z0-9]+$/.test(emoji)) throw new Refused(231001, 'reaction type is invalid.')
  if (!state.reactions.some((known) => known.message === id && known.emoji === emoji)) state.reactions.push({ message: id, emoji })
  return ok({ reaction_id: randomUUID(), reaction_type: { emoji_type: emoji } })
}

/** "Get the content of a specified message": a recalled message is returned as such, and messages that were passed on follow it. */
function one(state: WorkchatState, id: string): ProviderReply {
  const message = state.chats.find(id)
  if (!message) throw new Refused(230001, 'Your request contains an invalid request parameter, message_id')
  return ok({ items: [message, ...state.chats.passedOn(id)].map(shown) })
}

function history(state: WorkchatState, query: URLSearchParams): ProviderReply {
  const [container, type] = [query.get('container_id') ?? '', query.get('container_id_type') ?? '']
  const size = Number(query.get('page_size') ?? 20)
  if (!['chat', 'thread'].includes(type) || !(size >= 1 && size <= PAGE_MAX)) throw new Refused(230001, 'invalid request parameter')
  if (type === 'chat' && state.chats.typeOf(container) === undefined) throw new Refused(230002, 'Bot/User can NOT be out of the chat.')
  if (type === 'thread' && query.has('start_time')) throw new Refused(230001, 'start_time is not supported for threads')
  const { items, next } = state.chats.history({
    container,
    type,
    startSecs: Number(query.get('start_time') ?? 0),
    isDescending: query.get('sort_type') === 'ByCreateTimeDesc',
    size,
    from: Number(query.get('page_token') ?? 0),
  })
  return ok({ has_more: next !== '', page_token: next, items })
}

async function uploadImage(state: WorkchatState, request: ProviderRequest): Promise<ProviderReply> {
  const form = await formOf(request)
  if (form.get('image_type') !== 'message') throw new Refused(234001, 'Invalid request param.')
  return ok({ image_key: await keepFile(state, 'img', form.get('image'), IMAGE_BYTES_MAX) })
}

async function uploadFile(state: WorkchatState, request: ProviderRequest): Promise<ProviderReply> {
  const form = await formOf(request)
  if (!FILE_TYPES.includes(String(form.get('file_type'))) || !form.get('file_name')) throw new Refused(234001, 'Invalid request param.')
  return ok({ file_key: await keepFile(state, 'file', form.get('file'), FILE_BYTES_MAX) })
}

const formOf = ({ body, headers }: ProviderRequest): Promise<FormData> =>
  new Response(new Uint8Array(body), { headers: { 'content-type': headers.get('content-type') ?? '' } }).formData()

async function keepFile(state: WorkchatState, prefix: string, value: string | File | null, max: number): Promise<string> {
  if (value === null) throw new Refused(234001, 'Invalid request param.')
  // The SDK of the platform sends bytes without a file name, which makes them a text for the parser of forms.
  const file = typeof value === 'string' ? new File([value], '') : value
  if (file.size === 0) throw new Refused(234010, "File's size can't be 0.")
  if (file.size > max || state.files.size >= FILES_MAX) throw new Refused(234006, 'The file size exceed the max value.')
  const key = `${prefix}_v3_${randomUUID()}`
  state.files.set(key, { name: file.name, bytes: new Uint8Array(await file.arrayBuffer()), mime: file.type })
  return key
}

function resource(state: WorkchatState, id: string, key: string, query: URLSearchParams): ProviderReply {
  const message = state.chats.find(id)
  const file = state.files.get(decodeURIComponent(key))
  if (!message?.body.content.includes(decodeURIComponent(key)) || !file) throw new Refused(234003, 'File not in msg.')
  if (!['image', 'file'].includes(query.get('type') ?? '')) throw new Refused(234001, 'Invalid request param.')
  return { status: 200, headers: { 'content-type': file.mime || 'application/octet-stream' }, body: file.bytes }
}
