/** The Web API of the fake workspace. Every answer has status 200; a refusal is an error word in the body. */
import type { ProviderReply, ProviderRequest } from '@sluice/testkit/fake-provider'
import { problemsOf } from './fake-blocks.ts'
import type { SlackConversations, SlackMessage, Window } from './fake-conversations.ts'
import type { SlackFiles } from './fake-files.ts'

/** The state that the methods of the Web API work on. */
export interface SlackWorkspace {
  readonly url: string
  readonly bot: { readonly user: string; readonly id: string }
  readonly conversations: SlackConversations
  readonly files: SlackFiles
  /** The conversations the bot is not a member of. */
  readonly foreign: ReadonlySet<string>
  readonly archived: ReadonlySet<string>
  readonly tokens: { readonly bot_token: string; readonly app_token: string }
  readonly statuses: { channel: string; thread: string; status: string }[]
  /** Returns the path for a new connection. */
  ticket(): string
  /** Reports a message of the bot to all members, including the bot. */
  written(channel: string, message: SlackMessage): void
}

type Args = Readonly<Record<string, string>>
type Method = (workspace: SlackWorkspace, args: Args) => object

class Refusal extends Error {}
const refuse = (word: string): never => {
  throw new Refusal(word)
}

const TEXT_CHARS_MAX = 40_000
const EDIT_CHARS_MAX = 4000
const PAGE_MAX = 999
/** Methods that ignore a JSON body. */
const FORM_ONLY = /^(?:conversations|files|auth|apps)\./

/** Answers a call of the method `name`. */
export function answerMethod(workspace: SlackWorkspace, name: string, request: ProviderRequest): ProviderReply {
  const method = METHODS[name]
  if (!method) return ok({ ok: false, error: 'unknown_method' })
  try {
    authorize(workspace, name, request.headers.get('authorization'))
    return ok({ ok: true, ...method(workspace, argsOf(name, request)) })
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return ok({ ok: false, error: error.message })
  }
}

const ok = (body: object): ProviderReply => ({ status: 200, body })

function authorize({ tokens }: SlackWorkspace, name: string, header: string | null): void {
  const token = /^Bearer (\S+)$/.exec(header ?? '')?.[1]
  if (token === undefined) refuse('not_authed')
  const [wanted, other] = name === 'apps.connections.open' ? [tokens.app_token, tokens.bot_token] : [tokens.bot_token, tokens.app_token]
  if (token === other) refuse('not_allowed_token_type')
  if (token !== wanted) refuse('invalid_auth')
}

function argsOf(name: string, { headers, body, json }: ProviderRequest): Args {
  const type = headers.get('content-type') ?? ''
  if (type.startsWith('application/x-www-form-urlencoded')) return Object.fromEntries(new URLSearchParams(body.toString()))
  if (!type.startsWith('application/json') || FORM_ONLY.test(name)) return {}
  const entries = Object.entries((json ?? {}) as Record<string, unknown>)
  return Object.fromEntries(entries.map(([key, value]) => [key, typeof value === 'string' ? value : JSON.stringify(value)]))
}

const METHODS: Readonly<Record<string, Method>> = {
  'auth.test': ({ bot, url }) => ({ url, team: 'Fake', user: 'sluice', team_id: 'T1', user_id: bot.user, bot_id: bot.id }),
  'users.info': (_, { user = '' }) => {
    if (!/^[UW][A-Z0-9]+$/.test(user)) refuse('user_not_found')
    const name = user.slice(1).toLowerCase()
    return { user: { id: user, name, real_name: `${name} smith`, profile: { display_name: name, real_name: `${name} smith` } } }
  },
  'apps.connections.open': ({ url, ticket }) => ({ url: `${url.replace(/^http/, 'ws')}${ticket()}` }),
  'chat.postMessage': (workspace, args) => {
    const channel = writable(workspace, args)
    const text = (args.text ?? '').slice(0, TEXT_CHARS_MAX)
    const blocks = blocksOf(args)
    if (text === '' && blocks.length === 0) refuse('no_text')
    const message = post(workspace, channel, { text, blocks, thread: args.thread_ts })
    return { channel, ts: message.ts, message }
  },
  'chat.update': (workspace, args) => {
    const channel = writable(workspace, args)
    const { conversations, bot } = workspace
    const message = conversations.find(channel, args.ts ?? '') ?? refuse('message_not_found')
    if (message.user !== bot.user) refuse('cant_update_message')
    const text = args.text ?? ''
    if (text.length > EDIT_CHARS_MAX) refuse('msg_too_long')
    const blocks = args.blocks === undefined ? (message.blocks ?? []) : blocksOf(args)
    if (text === '' && blocks.length === 0) refuse('no_text')
    const { blocks: _, ...rest } = message
    const edited = { user: bot.user, ts: message.ts }
    conversations.replace(channel, { ...rest, text, edited, ...(blocks.length > 0 && { blocks }) })
    return { channel, ts: message.ts, text }
  },
  'conversations.history': (workspace, args) => pageOf(workspace.conversations.history(readable(workspace, args), windowOf(args))),
  'conversations.replies': (workspace, args) => {
    const channel = readable(workspace, args)
    const root = workspace.conversations.find(channel, args.ts ?? '') ?? refuse('thread_not_found')
    return pageOf(workspace.conversations.replies(channel, root, windowOf(args)))
  },
  'files.getUploadURLExternal': ({ files, url }, { filename = '', length = '' }) => {
    if (filename === '' || !/^[1-9]\d*$/.test(length)) refuse('invalid_arguments')
    const { id, path } = files.reserve(filename, Number(length))
    return { upload_url: `${url}${path}`, file_id: id }
  },
  'files.completeUploadExternal': (workspace, args) => {
    const wanted = listIn(args.files) as { id?: string; title?: string }[]
    if (wanted.length === 0) refuse('invalid_arguments')
    const { channel_id: place, thread_ts: thread } = args
    if (place !== undefined && thread !== undefined && !workspace.conversations.find(place, thread)) refuse('thread_not_found')
    const shared = wanted.map(({ id = '', title }) => workspace.files.share(id, title) ?? refuse('file_not_found'))
    if (args.channel_id !== undefined) {
      const channel = writable(workspace, { channel: args.channel_id })
      // "If the initial_comment field is provided, the blocks field is ignored": https://docs.slack.dev/reference/methods/files.completeUploadExternal
      const blocks = args.initial_comment === undefined ? blocksOf(args) : []
      const text = args.initial_comment ?? ''
      post(workspace, channel, { text, blocks, thread: args.thread_ts, files: shared })
    }
    return { files: shared.map(({ id, title }) => ({ id, title })) }
  },
  'files.info': ({ files }, { file = '' }) => ({ file: files.info(file) ?? refuse('file_not_found') }),
  'assistant.threads.setStatus': (workspace, { channel_id = '', thread_ts = '', status = '' }) => {
    const { conversations, statuses } = workspace
    if (!conversations.has(channel_id)) refuse('channel_not_found')
    if (!conversations.find(channel_id, thread_ts)) refuse('invalid_thread_ts')
    statuses.push({ channel: channel_id, thread: thread_ts, status })
    return {}
  },
}

function post(
  workspace: SlackWorkspace,
  channel: string,
  content: { text: string; blocks: readonly unknown[]; thread: string | undefined; files?: readonly object[] },
): SlackMessage {
  const { conversations, bot } = workspace
  const { text, blocks, thread, files } = content
  const root = thread === undefined ? undefined : conversations.find(channel, thread)
  // The word of https://docs.slack.dev/reference/methods/conversations.replies for a thread that does not exist.
  if (thread !== undefined && !root) refuse('thread_not_found')
  const message = conversations.add(channel, {
    user: bot.user,
    bot_id: bot.id,
    text,
    ...(root && { thread_ts: root.thread_ts ?? root.ts }),
    ...(blocks.length > 0 && { blocks }),
    ...(files && { files, subtype: 'file_share' }),
  })
  workspace.written(channel, message)
  return message
}

function readable({ conversations, foreign }: SlackWorkspace, { channel = '' }: Args): string {
  if (!conversations.has(channel)) refuse('channel_not_found')
  if (foreign.has(channel)) refuse('not_in_channel')
  return channel
}

function writable(workspace: SlackWorkspace, args: Args): string {
  const channel = readable(workspace, args)
  if (workspace.archived.has(channel)) refuse('is_archived')
  return channel
}

function blocksOf({ blocks }: Args): readonly unknown[] {
  if (blocks === undefined) return []
  const list = listIn(blocks)
  if (problemsOf(list).length > 0) refuse('invalid_blocks')
  return list
}

function listIn(json: string | undefined): readonly unknown[] {
  try {
    const value: unknown = JSON.parse(json ?? '[]')
    return Array.isArray(value) ? value : refuse('invalid_arguments')
  } catch (error) {
    if (error instanceof Refusal) throw error
    return refuse('invalid_arguments')
  }
}

function windowOf({ oldest = '0', latest = '', limit = '100', cursor = '' }: Args): Window {
  const size = Number(limit)
  if (!Number.isInteger(size) || size < 1 || size > PAGE_MAX) refuse('invalid_limit')
  return { oldest, latest, limit: size, cursor }
}

const pageOf = ({ messages, next }: { readonly messages: readonly object[]; readonly next: string }): object => ({
  messages,
  has_more: next !== '',
  response_metadata: { next_cursor: next },
})
