/** The conversations of the fake workspace: messages whose ids are timestamps, threads, and paged reading of both. */

/** A message as the Web API returns it. */
export interface SlackMessage {
  readonly type: 'message'
  readonly subtype?: string
  readonly ts: string
  readonly user: string
  readonly bot_id?: string
  readonly text: string
  readonly thread_ts?: string
  readonly parent_user_id?: string
  readonly blocks?: readonly unknown[]
  readonly files?: readonly object[]
  readonly edited?: { readonly user: string; readonly ts: string }
}

/** A message to add; its id is assigned. */
export type NewSlackMessage = Omit<SlackMessage, 'type' | 'ts' | 'parent_user_id'> & { readonly atSecs?: number }

/** The part of a conversation to read; `cursor` is empty for the first page. */
export interface Window {
  readonly oldest: string
  readonly latest: string
  readonly limit: number
  readonly cursor: string
}

/** A page of messages; `next` is empty for the last one. */
export interface Page {
  readonly messages: readonly object[]
  readonly next: string
}

const FIRST_SECS = 1_767_225_600
const MESSAGES_MAX = 100_000

/** The conversations and their messages. */
export class SlackConversations {
  readonly #messages = new Map<string, SlackMessage[]>()
  readonly #nowMs: (() => number) | undefined
  #lastSecs = FIRST_SECS
  #lastMs = 0

  /** Without `nowMs`, each message is one second after the last. */
  constructor(channels: readonly string[], nowMs?: () => number) {
    for (const channel of channels) this.#messages.set(channel, [])
    this.#nowMs = nowMs
  }

  has(channel: string): boolean {
    return this.#messages.has(channel)
  }

  /** Every message of the conversation, oldest first, including those in threads. */
  list(channel: string): readonly SlackMessage[] {
    return this.#messages.get(channel) ?? []
  }

  find(channel: string, ts: string): SlackMessage | undefined {
    return this.list(channel).find((message) => message.ts === ts)
  }

  add(channel: string, { atSecs, ...content }: NewSlackMessage): SlackMessage {
    const messages = this.#messages.get(channel)
    if (!messages || messages.length >= MESSAGES_MAX) throw new Error(`conversation ${channel} is unknown or full`)
    const ts = atSecs === undefined ? this.#nextId() : `${atSecs}.000100`
    const parent = content.thread_ts === undefined ? undefined : this.find(channel, content.thread_ts)
    const message: SlackMessage = { type: 'message', ts, ...content, ...(parent && { parent_user_id: parent.user }) }
    messages.push(message)
    messages.sort((a, b) => (a.ts < b.ts ? -1 : 1))
    return message
  }

  #nextId(): string {
    if (!this.#nowMs) return `${++this.#lastSecs}.000100`
    this.#lastMs = Math.max(this.#lastMs + 1, Math.floor(this.#nowMs()))
    return `${Math.floor(this.#lastMs / 1000)}.${String(this.#lastMs % 1000).padStart(3, '0')}100`
  }

  replace(channel: string, changed: SlackMessage): void {
    const messages = this.#messages.get(channel) ?? []
    messages[messages.findIndex(({ ts }) => ts === changed.ts)] = changed
  }

  remove(channel: string, ts: string): SlackMessage | undefined {
    const messages = this.#messages.get(channel) ?? []
    const at = messages.findIndex((message) => message.ts === ts)
    return at < 0 ? undefined : messages.splice(at, 1)[0]
  }

  /** A page of messages, newest first, without those posted only to a thread. */
  history(channel: string, window: Window): Page {
    const roots = this.list(channel).filter(({ thread_ts, subtype }) => thread_ts === undefined || subtype === 'thread_broadcast')
    return page(
      within(roots, window)
        .reverse()
        .map((message) => ({ ...message, ...this.#threadOf(channel, message) })),
      window,
    )
  }

  /** A page of a thread, oldest first; every page starts with the thread's first message. */
  replies(channel: string, root: SlackMessage, window: Window): Page {
    const replies = this.list(channel).filter(({ thread_ts }) => thread_ts === root.ts)
    const { messages, next } = page(within(replies, window), { ...window, limit: Math.max(1, window.limit - 1) })
    return { messages: [{ ...root, ...this.#threadOf(channel, root) }, ...messages], next }
  }

  #threadOf(channel: string, { ts }: SlackMessage): object {
    const replies = this.list(channel).filter(({ thread_ts }) => thread_ts === ts)
    return replies.length === 0 ? {} : { thread_ts: ts, reply_count: replies.length, latest_reply: replies.at(-1)?.ts }
  }
}

const within = (messages: readonly SlackMessage[], { oldest, latest }: Window): SlackMessage[] =>
  messages.filter(({ ts }) => ts > oldest && (latest === '' || ts < latest))

function page(messages: readonly object[], { cursor, limit }: Window): Page {
  const from = Number(cursor || 0)
  const to = from + limit
  return { messages: messages.slice(from, to), next: to < messages.length ? String(to) : '' }
}
