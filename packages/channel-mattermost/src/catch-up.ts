/**
 * Reads what was written, edited, deleted and pressed while no connection was open, and delivers it. `posts?since` returns at most 1,000
 * posts in no order, so a conversation with more is read again page by page, the newest post first.
 */
import { pathSegment } from '@sluice/kit'
import { list, members, text } from '@sluice/kit/foreign-json'
import { AppError, type Deliver, type Gap, type Host, type Inbound } from '@sluice/sdk'
import type { MattermostApi } from './api.ts'
import { hasButtons, isButtonEmoji } from './buttons.ts'
import { advance, type MattermostCursors, OVERLAP_MS, readsFromMs } from './cursors.ts'
import { type Bot, type Post, parseDeletion, parsePress, postOf, reactionsOf } from './parse.ts'
import type { Place, Places } from './places.ts'

/** Messages older than this are not answered any more. */
const STALE_MS = 3_600_000
/** The most posts in an answer to `posts?since`. */
const SINCE_MAX = 1000
const PAGE = 200
const PAGES_MAX = 25
const PLACES_MAX = 500
const ANSWER_BYTES_MAX = 64 * 1024 * 1024

interface Window {
  /** Changes and posts from this time on are read. */
  readonly fromMs: number
  /** Posts of before this time are not answered. */
  readonly freshFromMs: number
}

export class CatchUp {
  readonly #host: Host
  readonly #api: MattermostApi
  readonly #cursors: MattermostCursors
  readonly #places: Places
  readonly #bot: Bot
  readonly #deliver: Deliver
  readonly #onGap: (gap: Gap) => void

  /** `onGap` is called when messages are skipped. */
  constructor(
    host: Host,
    api: MattermostApi,
    cursors: MattermostCursors,
    places: Places,
    bot: Bot,
    deliver: Deliver,
    onGap: (gap: Gap) => void,
  ) {
    this.#host = host
    this.#api = api
    this.#cursors = cursors
    this.#places = places
    this.#bot = bot
    this.#deliver = deliver
    this.#onGap = onGap
  }

  /** Rejects if a conversation could not be read or a message not be stored; the next run then delivers some messages again. */
  async run(signal: AbortSignal): Promise<void> {
    const fromMs = readsFromMs(this.#cursors)
    if (fromMs === undefined) return
    const window = { fromMs, freshFromMs: Math.max(fromMs, this.#host.clock.nowMs() - STALE_MS) }
    let newestMs = 0
    for (const place of await this.#placesSince(window, signal)) {
      if (signal.aborted) return
      newestMs = Math.max(newestMs, await this.#readPlace(place, window, signal))
    }
    if (newestMs > 0) advance(this.#cursors, newestMs, this.#host.clock.nowMs())
  }

  /** Returns the conversations in which a message may have been written or changed, those with the oldest messages first. */
  async #placesSince({ fromMs }: Window, signal: AbortSignal): Promise<readonly Place[]> {
    const places = (await this.#places.list(signal))
      // An edit or a reaction does not count as a post, so a conversation with recent posts is read, too.
      .filter(({ lastPostAtMs }) => lastPostAtMs >= fromMs - STALE_MS)
      .toSorted((a, b) => a.lastPostAtMs - b.lastPostAtMs)
    if (places.length > PLACES_MAX) this.#onGap({ sinceMs: fromMs, why: `messages may be missing in more than ${PLACES_MAX} channels` })
    return places.slice(-PLACES_MAX)
  }

  /** Returns the time of the newest post. */
  async #readPlace(place: Place, window: Window, signal: AbortSignal): Promise<number> {
    try {
      const posts = await this.#posts(place.id, window, signal)
      await this.#deliverPosts(posts, place, window, signal)
      return Math.max(0, ...posts.map(({ createdAtMs }) => createdAtMs))
    } catch (error) {
      const isGone = error instanceof AppError && (error.code === 'forbidden' || error.code === 'invalid_request')
      if (!isGone || signal.aborted) throw error
      this.#host.log.warn('conversation can no longer be read', { channel: 'mattermost', conversation: place.id, error })
      return 0
    }
  }

  async #posts(channel: string, { fromMs, freshFromMs }: Window, signal: AbortSignal): Promise<readonly Post[]> {
    const path = `/channels/${pathSegment(channel)}/posts` as const
    const changed = await this.#read(`${path}?since=${Math.max(1, fromMs - 1)}`, signal)
    if (changed.count < SINCE_MAX) return oldestFirst(changed.posts)
    const found = new Map(changed.posts.map((post) => [post.id, post]))
    for (let page = 0; page < PAGES_MAX; page++) {
      const { posts, count } = await this.#read(`${path}?page=${page}&per_page=${PAGE}&skipFetchThreads=true`, signal)
      for (const post of posts) found.set(post.id, post)
      if (count < PAGE || posts.some(({ createdAtMs }) => createdAtMs < freshFromMs)) return oldestFirst([...found.values()])
    }
    this.#onGap({ sinceMs: fromMs, why: `more than ${PAGES_MAX * PAGE} messages were missed in channel ${channel}` })
    return oldestFirst([...found.values()])
  }

  /**
   * Returns the posts of `order`; other posts in the answer are the beginnings of threads. `count` includes earlier versions of edited
   * posts, which are as many as the edits of a draft.
   */
  async #read(path: `/${string}`, signal: AbortSignal): Promise<{ readonly posts: readonly Post[]; readonly count: number }> {
    const { order, posts } = members(await this.#api.read(path, signal, ANSWER_BYTES_MAX))
    const byId = members(posts)
    const ids = list(order)
    return { posts: ids.flatMap((id) => postOf(byId[text(id)]) ?? []), count: ids.length }
  }

  async #deliverPosts(posts: readonly Post[], { id }: Place, window: Window, signal: AbortSignal): Promise<void> {
    const isDirect = await this.#places.isDirect(id, signal)
    let skipped = 0
    for (const post of posts) {
      if (signal.aborted) return
      if (post.createdAtMs >= window.freshFromMs) {
        const message = await this.#places.messageOf(post, signal)
        if (message) await this.#deliver(message)
      } else if (post.createdAtMs > window.fromMs + OVERLAP_MS && (await this.#places.messageOf(post, signal))) skipped += 1
      for (const change of this.#changesOf(post, isDirect, window)) await this.#deliver(change)
    }
    if (skipped > 0) {
      const why = `messages in channel ${id} are more than an hour old and are skipped`
      this.#onGap({ sinceMs: window.fromMs + OVERLAP_MS, why })
    }
  }

  #changesOf(post: Post, isDirect: boolean, { fromMs }: Window): readonly Inbound[] {
    // A message that is new here is delivered with its newest text.
    const isEdited = post.editedAtMs >= fromMs && post.createdAtMs <= fromMs + OVERLAP_MS && post.deletedAtMs === 0
    const edit = isEdited ? this.#places.editOf(post, isDirect) : undefined
    const deletion = post.deletedAtMs >= fromMs ? parseDeletion(post, this.#bot, isDirect) : undefined
    const presses = hasButtons(post.json)
      ? reactionsOf(post)
          .filter(({ emoji_name, create_at }) => isButtonEmoji(text(emoji_name)) && Number(create_at) >= fromMs)
          .flatMap((reaction) => parsePress(reaction, post, this.#bot, isDirect) ?? [])
      : []
    return [edit, deletion, ...presses].filter((change) => change !== undefined)
  }
}

const oldestFirst = (posts: readonly Post[]): Post[] => posts.toSorted((a, b) => a.createdAtMs - b.createdAtMs || (a.id < b.id ? -1 : 1))
