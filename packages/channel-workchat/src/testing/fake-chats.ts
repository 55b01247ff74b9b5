/** The conversations of the fake: messages of people and of the bot, their threads, reactions and histories. */
import { randomUUID } from 'node:crypto'

/** A message as the history returns it. */
export interface WorkchatMessage {
  readonly message_id: string
  readonly root_id?: string
  readonly parent_id?: string
  readonly thread_id?: string
  /** The message in which this one was passed on, with others. */
  readonly upper_message_id?: string
  readonly msg_type: string
  readonly create_time: string
  readonly update_time: string
  readonly deleted: boolean
  readonly updated: boolean
  readonly chat_id: string
  readonly sender: { readonly id: string; readonly id_type: 'open_id' | 'app_id'; readonly sender_type: 'user' | 'app' }
  readonly body: { readonly content: string }
  readonly mentions?: readonly { readonly key: string; readonly id: string; readonly id_type: 'open_id'; readonly name: string }[]
}

export type NewMessage = Pick<WorkchatMessage, 'msg_type' | 'sender' | 'body'> & {
  readonly parent?: string | undefined
  readonly inThread?: boolean | undefined
  readonly upper_message_id?: string
  readonly mentions?: NonNullable<WorkchatMessage['mentions']>
}

export interface Window {
  readonly container: string
  readonly type: string
  readonly startSecs: number
  readonly isDescending: boolean
  readonly size: number
  readonly from: number
}

const MESSAGES_MAX = 100_000

export class WorkchatChats {
  readonly #types: ReadonlyMap<string, string>
  readonly #messages: WorkchatMessage[] = []
  readonly #byId = new Map<string, number>()
  readonly #nowMs: () => number
  #lastMs = 0

  constructor(types: Readonly<Record<string, string>>, nowMs: () => number) {
    this.#types = new Map(Object.entries(types))
    this.#nowMs = nowMs
  }

  typeOf(chat: string): string | undefined {
    return this.#types.get(chat)
  }

  find(id: string): WorkchatMessage | undefined {
    return this.#messages[this.#byId.get(id) ?? -1]
  }

  list(chat?: string): readonly WorkchatMessage[] {
    const own = this.#messages.filter(({ upper_message_id }) => upper_message_id === undefined)
    return chat === undefined ? own : own.filter((message) => message.chat_id === chat)
  }

  /** Returns the messages that were passed on in a message, with the ones that were passed on in these. */
  passedOn(id: string): readonly WorkchatMessage[] {
    return this.#messages
      .filter(({ upper_message_id }) => upper_message_id === id)
      .flatMap((message) => [message, ...this.passedOn(message.message_id)])
  }

  /** Each message has a time of its own, so that tests know their order. */
  add(chat: string, { parent, inThread, ...content }: NewMessage): WorkchatMessage {
    if (this.#messages.length >= MESSAGES_MAX) throw new Error('too many messages')
    this.#lastMs = Math.max(this.#lastMs + 1, Math.floor(this.#nowMs()))
    const above = parent === undefined ? undefined : this.find(parent)
    const root = above && (above.root_id ?? above.message_id)
    const thread = above?.thread_id ?? (inThread && root !== undefined ? `omt_${root.slice(3)}` : undefined)
    const message: WorkchatMessage = {
      message_id: `om_${randomUUID().replaceAll('-', '')}`,
      create_time: String(this.#lastMs),
      update_time: String(this.#lastMs),
      deleted: false,
      updated: false,
      chat_id: chat,
      ...content,
      ...(above && root !== undefined && { root_id: root, parent_id: above.message_id }),
      ...(thread !== undefined && { thread_id: thread }),
    }
    this.#byId.set(message.message_id, this.#messages.push(message) - 1)
    // The first message of a thread belongs to it from its first reply on.
    const first = root === undefined ? undefined : this.find(root)
    if (first && thread !== undefined && first.thread_id === undefined) this.replace({ ...first, thread_id: thread })
    return message
  }

  replace(changed: WorkchatMessage): void {
    this.#messages[this.#byId.get(changed.message_id) ?? -1] = changed
  }

  /** Returns the time of a change, later than all messages. */
  changedAt(): string {
    this.#lastMs = Math.max(this.#lastMs + 1, Math.floor(this.#nowMs()))
    return String(this.#lastMs)
  }

  /** A page of a conversation, which has only the first messages of its threads, or of a thread. */
  history({ container, type, startSecs, isDescending, size, from }: Window): { items: readonly WorkchatMessage[]; next: string } {
    const isIn = (message: WorkchatMessage): boolean =>
      type === 'thread'
        ? message.thread_id === container
        : message.chat_id === container && (message.thread_id === undefined || message.root_id === undefined)
    const found = this.list().filter((message) => isIn(message) && Number(message.create_time) >= startSecs * 1000)
    const sorted = isDescending ? found.toReversed() : found
    return { items: sorted.slice(from, from + size), next: from + size < sorted.length ? String(from + size) : '' }
  }
}
