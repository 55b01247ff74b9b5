/**
 * A Mattermost server on loopback with a bot account and a person: its REST API, WebSocket and files. Requests, answers and refusals follow the
 * API reference (https://developers.mattermost.com/api-documentation/) and, where it is silent, the server's source in version 11.
 */
import type { FileInfo } from '@mattermost/types/files'
import { type FakeProvider, type ProviderReply, type ProviderRequest, startFakeProvider } from '@sluice/testkit/fake-provider'
import { idOf, type MattermostPost, MattermostPosts } from './fake-posts.ts'
import { MattermostSockets } from './fake-socket.ts'

export const MATTERMOST_TOKEN = 'mattermost-bot-token-01'
/** The token of the person `MATTERMOST_USER`. */
export const MATTERMOST_USER_TOKEN = 'mattermost-user-token-01'
export const MATTERMOST_BOT = { id: idOf('b', 1), username: 'sluice' }
export const MATTERMOST_USER = idOf('u', 1)
export const MATTERMOST_OTHER_USER = idOf('u', 2)
/** A channel, a private channel, a group message and a direct message. */
export const MATTERMOST_CHANNEL = idOf('c', 1)
export const MATTERMOST_PRIVATE = idOf('c', 2)
export const MATTERMOST_GROUP = idOf('c', 3)
export const MATTERMOST_DIRECT = idOf('c', 4)

export interface MattermostFakeOptions {
  readonly port?: number
  /** Further channels, as id and type. */
  readonly channels?: Readonly<Record<string, string>>
  nowMs?(): number
}

export interface MattermostSaid {
  readonly text: string
  /** Default: `MATTERMOST_CHANNEL`. */
  readonly channel?: string
  /** Default: `MATTERMOST_USER`. */
  readonly from?: string
  readonly thread?: string
  readonly type?: MattermostPost['type']
  readonly props?: Record<string, unknown>
  readonly files?: readonly string[]
  /** A time that an administrator gives. Default: now. */
  readonly createdAtMs?: number
  /** Sends no event. */
  readonly isLost?: boolean
}

export interface MattermostFake extends FakeProvider {
  readonly sockets: MattermostSockets
  readonly posts: MattermostPosts
  /** The posts of the bot in their current form. */
  readonly sent: readonly MattermostPost[]
  readonly typing: readonly object[]
  /** Writes a post as a person. Returns its id. */
  say(said: MattermostSaid): string
  edit(id: string, text: string): void
  pin(id: string): void
  delete(id: string, options?: { readonly isLost?: boolean }): void
  /** Adds a reaction as a person. */
  react(id: string, emoji: string, options?: { readonly from?: string; readonly isLost?: boolean }): void
  /** Stores a file of a person. Returns its id. */
  addFile(file: { readonly name: string; readonly mime: string; readonly bytes: Uint8Array }): string
  bytesOf(file: string): Uint8Array | undefined
  /** Removes the bot from a channel. */
  leave(channel: string): void
  /** Revokes the token. */
  revoke(): void
}

interface StoredFile {
  readonly id: string
  readonly name: string
  readonly mime_type: string
  readonly size: number
  readonly bytes: Uint8Array
}

const RUNES_MAX = 16_383
const FILES_MAX = 10
const FILE_BYTES_MAX = 104_857_600
const PENDING_MS = 30_000
const EMOJI = /^[a-z0-9_+-]+$/

const refusal = (status: number, id: string, message: string): ProviderReply => ({
  status,
  body: { id, message, detailed_error: 'sql: internal detail', request_id: idOf('r', 1), status_code: status },
})
const NO_SESSION = refusal(401, 'api.context.session_expired.app_error', 'Invalid or expired session, please login again.')
const NO_PERMISSION = refusal(403, 'api.context.permissions.app_error', 'You do not have the appropriate permissions.')
const NOT_FOUND = refusal(404, 'api.context.404.app_error', 'Sorry, we could not find the page.')
const NO_POST = refusal(404, 'app.post.get.app_error', 'Unable to get the post.')

export async function startMattermostFake(options: MattermostFakeOptions = {}): Promise<MattermostFake> {
  const { port = 0, nowMs = Date.now } = options
  const types = new Map<string, string>(
    Object.entries({
      [MATTERMOST_CHANNEL]: 'O',
      [MATTERMOST_PRIVATE]: 'P',
      [MATTERMOST_GROUP]: 'G',
      [MATTERMOST_DIRECT]: 'D',
      ...options.channels,
    }),
  )
  const posts = new MattermostPosts(nowMs)
  const files = new Map<string, StoredFile>()
  const pending = new Map<string, { readonly id: string; readonly atMs: number }>()
  const typing: object[] = []
  const users = new Map([
    [MATTERMOST_TOKEN, MATTERMOST_BOT.id],
    [MATTERMOST_USER_TOKEN, MATTERMOST_USER],
  ])
  const sockets = new MattermostSockets((token) => users.get(token))

  const channelOf = (id: string) => ({ id, type: types.get(id), name: id, last_post_at: posts.lastPostAt(id), delete_at: 0 })
  const emitPosted = (post: MattermostPost): void => {
    const data = {
      channel_type: types.get(post.channel_id),
      channel_name: post.channel_id,
      sender_name: '@ada',
      mentions: JSON.stringify([]),
      post: JSON.stringify(post),
      set_online: true,
    }
    sockets.emit('posted', data, { channel_id: post.channel_id })
  }
  const emitChanged = (event: string, post: MattermostPost): void =>
    sockets.emit(event, { post: JSON.stringify(post) }, { channel_id: post.channel_id })

  function create(user: string, json: unknown): ProviderReply {
    const {
      channel_id = '',
      message = '',
      root_id = '',
      file_ids = [],
      props = {},
      pending_post_id = '',
      ...rest
    } = (json ?? {}) as Partial<Record<'channel_id' | 'message' | 'root_id' | 'pending_post_id' | 'id', string>> & {
      file_ids?: string[]
      props?: Record<string, unknown>
    }
    if (rest.id) return refusal(400, 'app.post.save.existing.app_error', 'You cannot update an existing Post.')
    if (!types.has(channel_id)) return NO_PERMISSION
    if ([...message].length > RUNES_MAX) {
      return refusal(
        400,
        'model.post.is_valid.message_length.app_error',
        'Post Message property is longer than the maximum permitted length.',
      )
    }
    if (file_ids.length > FILES_MAX) return refusal(400, 'model.post.is_valid.file_ids.app_error', 'Invalid file ids.')
    const root = posts.get(root_id)
    if (root_id !== '' && (!root || root.delete_at > 0 || root.root_id !== '')) {
      return refusal(400, 'api.post.create_post.root_id.app_error', 'Invalid RootId parameter.')
    }
    if (root && root.channel_id !== channel_id) {
      return refusal(400, 'api.post.create_post.channel_root_id.app_error', 'Invalid ChannelId for RootId parameter.')
    }
    if (message === '' && file_ids.length === 0) return refusal(400, 'model.post.is_valid.msg.app_error', 'Invalid message.')
    const repeated = pending.get(pending_post_id)
    if (pending_post_id !== '' && repeated && nowMs() - repeated.atMs < PENDING_MS) return { status: 201, body: posts.get(repeated.id) }
    const attached = file_ids.flatMap((id) => files.get(id) ?? [])
    const post = posts.add({
      user_id: user,
      channel_id,
      message,
      root_id,
      props: { ...props, ...(user === MATTERMOST_BOT.id && { from_bot: 'true' }) },
      file_ids: attached.map(({ id }) => id),
      files: attached.map(infoOf),
      pending_post_id,
    })
    if (pending_post_id !== '') pending.set(pending_post_id, { id: post.id, atMs: nowMs() })
    emitPosted(post)
    return { status: 201, body: post }
  }

  function patch(user: string, id: string, json: unknown): ProviderReply {
    const { message, props } = (json ?? {}) as { message?: string; props?: Record<string, unknown> }
    const post = posts.get(id)
    if (!post || post.user_id !== user) return NO_PERMISSION
    if (post.delete_at > 0) return refusal(400, 'api.post.update_post.permissions_details.app_error', 'Already deleted.')
    if ([...(message ?? '')].length > RUNES_MAX) {
      return refusal(
        400,
        'model.post.is_valid.message_length.app_error',
        'Post Message property is longer than the maximum permitted length.',
      )
    }
    const edited = posts.edit(id, { ...(message !== undefined && { message }), ...(props && { props }) })
    emitChanged('post_edited', edited)
    return { status: 200, body: edited }
  }

  async function upload({ body, headers, query }: ProviderRequest): Promise<ProviderReply> {
    const form = await new Response(new Uint8Array(body), { headers: { 'content-type': headers.get('content-type') ?? '' } }).formData()
    const channel = form.get('channel_id') ?? query.get('channel_id')
    if (typeof channel !== 'string' || !types.has(channel)) return NO_PERMISSION
    const added: StoredFile[] = []
    for (const part of form.getAll('files')) {
      if (typeof part === 'string') continue
      if (part.size > FILE_BYTES_MAX) return refusal(413, 'api.file.upload_file.too_large_detailed.app_error', 'File is too large.')
      added.push(store({ name: part.name, mime: part.type, bytes: new Uint8Array(await part.arrayBuffer()) }))
    }
    if (added.length === 0) return refusal(400, 'api.file.upload_file.no_file.app_error', 'No file.')
    return { status: 201, body: { file_infos: added.map(infoOf), client_ids: [] } }
  }

  function store({ name, mime, bytes }: { name: string; mime: string; bytes: Uint8Array }): StoredFile {
    const file = { id: idOf('f', files.size + 1), name, mime_type: mime, size: bytes.length, bytes }
    files.set(file.id, file)
    return file
  }

  function react(user: string, json: unknown): ProviderReply {
    const { user_id = '', post_id = '', emoji_name = '' } = (json ?? {}) as Record<string, string>
    if (user_id !== user)
      return refusal(403, 'api.reaction.save_reaction.user_id.app_error', 'You cannot save a reaction for another user.')
    if (!EMOJI.test(emoji_name)) return refusal(400, 'model.reaction.is_valid.emoji_name.app_error', 'Invalid emoji name.')
    const post = posts.get(post_id)
    if (!post || post.delete_at > 0) return NO_POST
    return { status: 200, body: addReaction(user_id, post_id, emoji_name) }
  }

  function addReaction(user_id: string, post_id: string, emoji_name: string, isLost = false): object {
    const reaction = posts.react({ user_id, post_id, emoji_name })
    const channel_id = posts.get(post_id)?.channel_id
    if (!isLost) sockets.emit('reaction_added', { reaction: JSON.stringify({ ...reaction, channel_id }) }, { channel_id })
    return reaction
  }

  function read(user: string, path: string, query: URLSearchParams): ProviderReply {
    const [, channel = '', rest = ''] = /^\/channels\/([^/]+)(.*)$/.exec(path) ?? []
    const [, post = ''] = /^\/posts\/([^/]+)$/.exec(path) ?? []
    const [, file = ''] = /^\/files\/([^/]+)$/.exec(path) ?? []
    const [, person = ''] = /^\/users\/(u[a-z0-9]{25})$/.exec(path) ?? []
    if (person !== '') return { status: 200, body: { id: person, username: 'ada', nickname: '', first_name: 'Ada', last_name: 'Lovelace' } }
    if (path === '/users/me') {
      const isBot = user === MATTERMOST_BOT.id
      return { status: 200, body: { ...(isBot ? MATTERMOST_BOT : { id: user, username: 'ada' }), is_bot: isBot, roles: 'system_user' } }
    }
    if (path === '/users/me/channels') return { status: 200, body: [...types.keys()].map(channelOf) }
    if (channel !== '' && !types.has(channel)) return NO_PERMISSION
    if (channel !== '' && rest === '') return { status: 200, body: channelOf(channel) }
    if (channel !== '' && rest === '/posts') {
      const since = Number(query.get('since') ?? 0)
      if (Number.isNaN(since)) return refusal(400, 'api.context.invalid_url_param.app_error', 'Invalid since.')
      const perPage = Math.min(200, Number(query.get('per_page') ?? 60))
      return { status: 200, body: since > 0 ? posts.since(channel, since) : posts.page(channel, Number(query.get('page') ?? 0), perPage) }
    }
    if (post !== '') {
      const found = posts.get(post)
      if (!found || found.delete_at > 0) return NO_POST
      return types.has(found.channel_id) ? { status: 200, body: found } : NO_PERMISSION
    }
    if (file !== '') {
      const found = files.get(file)
      if (!found) return refusal(404, 'app.file_info.get.app_error', 'Unable to get the file info.')
      return { status: 200, headers: { 'content-type': found.mime_type }, body: found.bytes }
    }
    return NOT_FOUND
  }

  async function answer(request: ProviderRequest): Promise<ProviderReply> {
    const { method, headers, query, json } = request
    if (!request.path.startsWith('/api/v4/'))
      return { status: 200, headers: { 'content-type': 'text/html' }, body: '<html>Mattermost</html>' }
    const path = request.path.slice('/api/v4'.length)
    // The name of the scheme is compared without case; the official client writes it in capitals.
    const user = users.get(headers.get('authorization')?.replace(/^Bearer /i, '') ?? '')
    if (user === undefined) return NO_SESSION
    if (method === 'GET') return read(user, path, query)
    if (method === 'POST' && path === '/posts') return create(user, json)
    if (method === 'POST' && path === '/files') return upload(request)
    if (method === 'POST' && path === '/reactions') return react(user, json)
    if (method === 'POST' && path === '/users/me/typing') {
      const args = (json ?? {}) as { channel_id?: string }
      if (!types.has(args.channel_id ?? '')) return NO_PERMISSION
      typing.push(args)
      return { status: 200, body: { status: 'OK' } }
    }
    const [, patched = ''] = /^\/posts\/([^/]+)\/patch$/.exec(path) ?? []
    if (method === 'PUT' && patched !== '') return patch(user, patched, json)
    const [, deleted = ''] = /^\/posts\/([^/]+)$/.exec(path) ?? []
    if (method === 'DELETE' && deleted !== '') {
      if (posts.get(deleted)?.user_id !== user) return NO_PERMISSION
      emitChanged('post_deleted', posts.delete(deleted))
      return { status: 200, body: { status: 'OK' } }
    }
    const [, reacted = '', emoji = ''] = /^\/users\/me\/posts\/([^/]+)\/reactions\/([^/]+)$/.exec(path) ?? []
    if (method === 'DELETE' && posts.get(reacted)) {
      posts.unreact({ user_id: user, post_id: reacted, emoji_name: emoji })
      return { status: 200, body: { status: 'OK' } }
    }
    return NOT_FOUND
  }

  const provider = await startFakeProvider(answer, { port, upgrade: (...args) => sockets.upgrade(...args) })
  return {
    ...provider,
    sockets,
    posts,
    get sent() {
      return posts.list().filter(({ user_id }) => user_id === MATTERMOST_BOT.id)
    },
    typing,
    say({
      text,
      channel = MATTERMOST_CHANNEL,
      from = MATTERMOST_USER,
      thread,
      type,
      props,
      files: shared = [],
      createdAtMs,
      isLost = false,
    }) {
      const attached = shared.flatMap((id) => files.get(id) ?? [])
      const post = posts.add({
        user_id: from,
        channel_id: channel,
        message: text,
        ...(thread !== undefined && { root_id: thread }),
        ...(type !== undefined && { type }),
        ...(props && { props }),
        ...(createdAtMs !== undefined && { createdAtMs }),
        file_ids: attached.map(({ id }) => id),
        files: attached.map(infoOf),
      })
      if (!isLost) emitPosted(post)
      return post.id
    },
    edit: (id, text) => emitChanged('post_edited', posts.edit(id, { message: text })),
    pin: (id) => emitChanged('post_edited', posts.edit(id, { is_pinned: true })),
    delete(id, { isLost = false } = {}) {
      const post = posts.delete(id)
      if (!isLost) emitChanged('post_deleted', post)
    },
    react: (id, emoji, { from = MATTERMOST_USER, isLost = false } = {}) => void addReaction(from, id, emoji, isLost),
    addFile: (file) => store(file).id,
    bytesOf: (file) => files.get(file)?.bytes,
    leave: (channel) => void types.delete(channel),
    revoke: () => void users.delete(MATTERMOST_TOKEN),
    async close() {
      sockets.close()
      await provider.close()
    },
  }
}

const infoOf = ({ id, name, mime_type, size }: StoredFile): FileInfo => ({
  id,
  name,
  mime_type,
  size,
  extension: name.split('.').at(-1) ?? '',
  user_id: '',
  channel_id: '',
  create_at: 0,
  update_at: 0,
  delete_at: 0,
  width: 0,
  height: 0,
  has_preview_image: false,
  archived: false,
  clientId: '',
})

if (import.meta.main) console.log((await startMattermostFake({ port: Number(process.argv[2] ?? 0) })).url)
