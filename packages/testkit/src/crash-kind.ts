/** One kind of message for the suites of the whole product: how people write it, and how its platform delivers it. */
import type { FakeProvider, ProviderRequest } from './fake-provider.ts'
import type { SectionValues } from './section-values.ts'

export interface PostedRequest {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** A message that a sender wrote. */
export interface WrittenMessage {
  /** Unique in the run, and a part of the text of every message except answers. */
  readonly mark: string
  readonly sender: string
  readonly text: string
  /** The platform's id of the message. */
  readonly id: string
}

/** An act of a person, as the platform reports it. */
export interface Act {
  /** The platform's id of the message that the person wrote. */
  readonly id: string
  /** The request that reports it. Absent when the platform reports it over a connection of the daemon. */
  readonly request?: PostedRequest
}

/** A change of a message. */
export interface MessageChange {
  /** Unique in the run. */
  readonly mark: string
  /** Who changes the message; its sender on most platforms. */
  readonly sender: string
}

export interface CrashKind {
  /** The channel's section. */
  readonly section: SectionValues
  readonly senders: readonly [string, ...string[]]
  /** The entries of an allowlist that name the senders. Default: the senders. */
  readonly entries?: readonly string[]
  /** The most messages of one request. Default: 1. */
  readonly batchMax?: number
  /** The platform keeps its messages until the daemon has them; a request, if there is one, only announces them. Default: false. */
  readonly isPulled?: boolean
  /** Each sender has a conversation of their own, in which a keyword alone answers the only open question. Default: false. */
  readonly isPrivate?: boolean
  /** The platform drops a reply that it got before, so no reply is ever ambiguous. Default: false. */
  readonly dropsRepeats?: boolean
  /** False until the daemon has connected for the first time: messages written before are never delivered. Absent: always true. */
  isReady?(): boolean
  /**
   * Writes a message as its sender. Returns the platform's id of it. `after` is an earlier message of the sender, for platforms where
   * each message begins a conversation unless it answers another, such as mail.
   */
  write(message: Omit<WrittenMessage, 'id'>, after?: WrittenMessage): string
  /** Returns one attempt to deliver messages, with a signature of its own. Absent when messages arrive over a connection of the daemon. */
  request?(messages: readonly [WrittenMessage, ...WrittenMessage[]]): PostedRequest
  /**
   * Writes a message in a conversation with several people, with a mention of the bot in front, as the platform's clients write it. Absent
   * where such conversations do not exist, or where people cannot mention the bot.
   */
  mention?(message: Omit<WrittenMessage, 'id'>): Act
  /** Replaces the text of a message. Absent where the platform reports no edits. */
  edit?(message: WrittenMessage, change: MessageChange & { readonly text: string }): Act
  /** Deletes a message. Absent where the platform reports no deletions. */
  remove?(message: WrittenMessage, change: MessageChange): Act
  readonly fake: FakeProvider
  /** Returns the text in a request to the platform. Default: its body. */
  textIn?(request: ProviderRequest): string
  /** Returns the files that the platform accepted, with their sizes in bytes. For a channel that sends files. */
  files?(): readonly { readonly name: string; readonly size: number }[]
  /** Returns the texts that the platform accepted. */
  delivered(): readonly string[]
}
