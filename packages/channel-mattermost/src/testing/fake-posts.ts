/**
 * The posts of the fake server. Its rules follow the server's source: `post_store.go` (what `since` and pages return), `post.go` in
 * `app` (refusals, and repeats of a `pending_post_id`) and `reaction.go`.
 */
import type { FileInfo } from '@mattermost/types/files'
import type { Post, PostMetadata } from '@mattermost/types/posts'
import type { Reaction } from '@mattermost/types/reactions'

export type MattermostReaction = Readonly<Reaction>

/** A post in the form of the official client. The server leaves members of `metadata` out that are empty. */
export type MattermostPost = Readonly<Omit<Post, 'metadata' | 'file_ids'>> & {
  readonly file_ids: readonly string[]
  readonly metadata: Readonly<Partial<PostMetadata>>
}

export interface NewPost {
  readonly user_id: string
  readonly channel_id: string
  readonly message: string
  readonly root_id?: string
  readonly type?: Post['type']
  readonly props?: Record<string, unknown>
  readonly file_ids?: readonly string[]
  readonly files?: FileInfo[]
  readonly pending_post_id?: string
  /** A time that an administrator gives. Default: now. */
  readonly createdAtMs?: number
}

/** The most posts that `since` returns. The query has no order, so which ones is arbitrary. */
const SINCE_MAX = 1000
const POSTS_MAX = 100_000

/** Returns the id of the nth thing of a kind: 26 lower-case letters and digits. */
export const idOf = (kind: string, n: number): string => kind + n.toString(36).padStart(26 - kind.length, '0')

export class MattermostPosts {
  readonly #posts = new Map<string, MattermostPost>()
  readonly #nowMs: () => number
  #count = 0

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  get(id: string): MattermostPost | undefined {
    return this.#posts.get(id)
  }

  /** Every post, in the order of their creation, without earlier versions of edited posts. */
  list(channel?: string): readonly MattermostPost[] {
    return [...this.#posts.values()].filter(
      ({ channel_id, original_id }) => original_id === '' && (channel === undefined || channel === channel_id),
    )
  }

  lastPostAt(channel: string): number {
    return Math.max(0, ...this.list(channel).map(({ create_at }) => create_at))
  }

  add({ files, createdAtMs, ...post }: NewPost): MattermostPost {
    if (this.#posts.size >= POSTS_MAX) throw new Error('too many posts')
    const atMs = this.#nowMs()
    const added: MattermostPost = {
      id: this.#nextId(),
      create_at: createdAtMs ?? atMs,
      update_at: atMs,
      edit_at: 0,
      delete_at: 0,
      is_pinned: false,
      hashtags: '',
      reply_count: 0,
      original_id: '',
      root_id: '',
      type: '',
      props: {},
      file_ids: [],
      pending_post_id: '',
      ...post,
      metadata: files && files.length > 0 ? { files } : {},
    }
    // The database has no column for it.
    this.#posts.set(added.id, { ...added, pending_post_id: '' })
    this.#touch(added.root_id, atMs)
    return added
  }

  /** Replaces parts of a post, and keeps its earlier version as a deleted row of its own. */
  edit(id: string, changes: Partial<Pick<MattermostPost, 'message' | 'props' | 'is_pinned'>>): MattermostPost {
    const post = this.#existing(id)
    const atMs = this.#nowMs()
    const before = { ...post, id: this.#nextId(), original_id: id, delete_at: atMs, update_at: atMs }
    this.#posts.set(before.id, before)
    const edit_at = changes.message !== undefined && changes.message !== post.message ? atMs : post.edit_at
    return this.#replace({ ...post, ...changes, edit_at, update_at: atMs })
  }

  /** Deletes a post and the replies to it. Returns the post as it was, which is what the server sends. */
  delete(id: string): MattermostPost {
    const post = this.#existing(id)
    const atMs = this.#nowMs()
    for (const each of this.list().filter(({ root_id }) => root_id === id)) this.#replace({ ...each, delete_at: atMs, update_at: atMs })
    this.#replace({ ...post, message: '', delete_at: atMs, update_at: atMs })
    return post
  }

  react(reaction: Omit<MattermostReaction, 'create_at'>): MattermostReaction {
    const post = this.#existing(reaction.post_id)
    const added = { ...reaction, create_at: this.#nowMs() }
    const others = this.#reactions(post).filter((other) => !isSame(other, reaction))
    this.#replace({ ...post, update_at: added.create_at, metadata: { ...post.metadata, reactions: [...others, added] } })
    return added
  }

  unreact(reaction: Omit<MattermostReaction, 'create_at'>): void {
    const post = this.#existing(reaction.post_id)
    const reactions = this.#reactions(post).filter((other) => !isSame(other, reaction))
    this.#replace({ ...post, update_at: this.#nowMs(), metadata: { ...post.metadata, reactions } })
  }

  /** The answer to `posts?since`: what changed, with deleted posts and earlier versions, and the posts that begin the threads. */
  since(channel: string, since: number): object {
    const changed = [...this.#posts.values()].filter(({ channel_id, update_at }) => channel_id === channel && update_at > since)
    return this.#listed(changed.slice(0, SINCE_MAX))
  }

  page(channel: string, page: number, perPage: number): object {
    const posts = this.list(channel).filter(({ delete_at }) => delete_at === 0)
    return this.#listed(newestFirst(posts).slice(page * perPage, (page + 1) * perPage))
  }

  #listed(posts: readonly MattermostPost[]): object {
    const roots = posts.flatMap(({ root_id }) => this.#posts.get(root_id) ?? [])
    return {
      order: newestFirst(posts).map(({ id }) => id),
      posts: Object.fromEntries([...roots, ...posts].map((post) => [post.id, post])),
      next_post_id: '',
      prev_post_id: '',
    }
  }

  /** A reply changes the post that begins its thread. */
  #touch(id: string, atMs: number): void {
    const post = this.#posts.get(id)
    if (post) this.#replace({ ...post, update_at: atMs })
  }

  #reactions({ metadata }: MattermostPost): readonly MattermostReaction[] {
    return metadata.reactions ?? []
  }

  #existing(id: string): MattermostPost {
    const post = this.#posts.get(id)
    if (!post || post.delete_at > 0) throw new Error(`there is no post ${id}`)
    return post
  }

  #replace(post: MattermostPost): MattermostPost {
    this.#posts.set(post.id, post)
    return post
  }

  #nextId(): string {
    this.#count += 1
    return idOf('p', this.#count)
  }
}

const isSame = (a: Omit<MattermostReaction, 'create_at'>, b: Omit<MattermostReaction, 'create_at'>): boolean =>
  a.user_id === b.user_id && a.emoji_name === b.emoji_name

const newestFirst = (posts: readonly MattermostPost[]): MattermostPost[] => posts.toReversed().toSorted((a, b) => b.create_at - a.create_at)
