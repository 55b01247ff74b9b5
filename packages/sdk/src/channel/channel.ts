/** The port of a chat platform. A channel verifies, parses and sends; the daemon does the rest (docs/contract.md#channels). */

import type { Contact } from '../webhook/first-contact.ts'
import type { Attachment } from './attachments.ts'
import type { ChannelLink } from './channel-link.ts'
import type { OfferedCommand } from './chat-commands.ts'
import type { Addressed, Forwarded, Quoted, Thing } from './inbound-parts.ts'
import type { ListenContext, ListenCursors } from './listen.ts'
import type { Markup, TextStyle } from './markup.ts'

/** A request as it arrived: header names in lower case, the URL, and the raw bytes of the body. */
export interface Raw {
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly url: URL
  readonly body: Uint8Array
  readonly receivedAtMs: number
}

/** The destination of a reply, in terms of the channel. Only the channel reads it; the daemon stores it as JSON. */
export interface Address {
  /** The conversation: a phone number, a room or a chat. */
  readonly to: string
  /** The thread inside the conversation, on platforms with threads. */
  readonly thread?: string
  /** The message to quote, on platforms that can quote. */
  readonly replyTo?: string
  /** Further values that a reply needs, such as the subject of a mail. */
  readonly more?: Readonly<Record<string, string>>
}

/** The bytes of an inbound attachment. */
export interface Media {
  readonly bytes: Uint8Array
  readonly mime?: string
}

/** One message from a sender. */
export interface Inbound {
  /** The platform's id of the message, never an invented one. Channel, account and id identify a message that runs once. */
  readonly id: string
  /** The account that received the message, such as a phone number id or the name of a bot. */
  readonly account: string
  /** The stable identity of the sender, which the allowlist is matched against. */
  readonly sender: string
  /** The name that the sender has chosen, where the platform reports it. It proves nothing. */
  readonly name?: string
  readonly to: Address
  /** The words of the sender alone, with names in the place of mentions. */
  readonly text: string
  /** Absent for presses and deletions, and in messages that a release before 0.2 stored. */
  readonly addressed?: Addressed
  /**
   * Set where the configuration of the channel has only messages to the bot answered, and this one is not to the bot. It runs no turn,
   * whatever the rule of its room says, and answers nothing: a room that overhears keeps it for the next message to the bot.
   */
  readonly overheardOnly?: true
  /** The message that this one quotes, where the platform reports its words or files. */
  readonly quoted?: Quoted
  /** What the sender passes on without having written it. */
  readonly forwarded?: Forwarded
  /** What the sender sent that is neither text nor file, such as a location. Each reaches the model as a line. */
  readonly things?: readonly Thing[]
  /** Set for a member of an album, which platforms deliver piece by piece: the same id for all its members. They become one message. */
  readonly group?: { readonly id: string }
  /** Set by the daemon for a message that was joined from pieces: the messages as they arrived, in their order, with the first one. */
  readonly pieces?: readonly Inbound[]
  /** True when the platform does not vouch for the sender, such as for a mail without DMARC. The model gets the text as untrusted. */
  readonly unverified?: true
  /**
   * Where in `text` the words of others begin, on platforms that have quotes only in the text, such as mail. The model gets the rest as
   * untrusted text.
   */
  readonly quotedFrom?: number
  /**
   * The parts of `text` behind `quotedFrom` that are the sender's own words, such as an answer below a quote: the index of the first
   * character of each, and the one after its last. They are in order, and don't overlap.
   */
  readonly ownBelow?: readonly { readonly from: number; readonly to: number }[]
  /**
   * What the sender typed, where `text` has more, such as the subject of a mail and the mail that it answers. Commands and answers to
   * approvals are recognised in it; the model gets `text`.
   */
  readonly typed?: string
  readonly sentAtMs?: number
  /** Set by the daemon for a message that an edit changed: when the platform says that the edit was made. */
  readonly editedAtMs?: number
  readonly attachments?: readonly Attachment[]
  /**
   * Set by the daemon for a message whose files an attempt has read: the line of each for the model, by `lastingId`, else by the JSON of
   * `source`. `path` is where it was saved, and `failedAtMs` is when reading it failed.
   */
  readonly filesRead?: Readonly<Record<string, { readonly line: string; readonly path?: string; readonly failedAtMs?: number }>>
  /** The platform's id of the message that this one quotes, where the platform reports it. */
  readonly inReplyTo?: string
  /**
   * Set when the sender pressed a button: the id of the message with the button, which is empty where the platform does not name it, and
   * the button's value. `text` is then empty.
   */
  readonly pressed?: { readonly message: string; readonly value: string }
  /**
   * Set when the sender edited or deleted an earlier message: the id of that message. `id` then names the change, and differs for each
   * change of one message. After an edit, `text` and `attachments` are the new ones. The report of a deletion has no text, and an
   * empty `sender` where the platform does not name one. `only` says that the platform reports no attachments of an edit, so that the
   * message keeps its own. `by: 'sender'` says that nobody but the sender of a message deletes it; otherwise it may be a moderator, whom
   * the platform has checked.
   */
  readonly changes?: {
    readonly message: string
    readonly what: 'edited' | 'deleted'
    readonly only?: 'text'
    readonly by?: 'sender'
  }
}

/** A button under an outbound message. */
export interface Button {
  readonly label: string
  /** Returned in `Inbound.pressed`; at most 64 bytes of printable ASCII. */
  readonly value: string
  readonly tone: 'good' | 'bad'
}

/** One message to send. */
export interface Outbound {
  /** With the marks of `Markup.write`, where the channel has it and the text is a reply of an agent. */
  readonly text: string
  /** How parts of the text look, for a channel with `markup` but without `Markup.write`. Each character of the text is then meant as it is. */
  readonly styles?: readonly TextStyle[]
  /** The text without marks, where `text` has marks. */
  readonly plain?: string
  /** The attachments with their bytes. */
  readonly attachments?: readonly Attachment[]
  /** Buttons for platforms that have them; the text is complete without them. In `update`, no list removes the buttons. */
  readonly buttons?: readonly Button[]
  /** Opens a thread with this title for the discussion of the message, on platforms that open threads on messages. */
  readonly topic?: string
  /** The same for all attempts to send one message; platforms that accept a client message id receive it. */
  readonly clientId: string
}

/** The platform's id of a sent message, used for threads, edits and the outbox. */
export interface Sent {
  readonly id: string
}

/** Resolves when the message is durable. Rejects with `unavailable` when the store could not keep it. */
export type Deliver = (inbound: Inbound) => Promise<void>

export interface ChannelHealth {
  /** `degraded`: several replies in a row may or may not have been sent. */
  readonly state: 'ok' | 'connecting' | 'degraded' | 'down'
  readonly detail?: string
  readonly lastEventAtMs?: number
  readonly lastSentAtMs?: number
}

/** The result of a successful verification. */
export interface Verified {
  /** What verified the request, such as the name of a header, or what is missing when nothing did. Shown to operators. */
  readonly by: string
  /** A nonce that the platform never uses twice. The daemon refuses a second request with it. */
  readonly nonce?: string
}

/** A message that an operator sends to try a channel. */
export interface Sample {
  readonly sender: string
  /** The conversation, on platforms where replies go to a conversation. The channel invents one unless it is given. */
  readonly to?: string
  readonly text: string
  /** The platform's id of the message. */
  readonly id: string
  readonly atMs: number
  /** True: an event of the platform that is not a message, so that no turn runs. */
  readonly ignored?: true
}

/** A request as the platform sends it, signed with the configured secret. */
export interface SampleRequest {
  readonly headers: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string>>
  readonly body: string
  /** Only the platform can sign such a request, so the channel must refuse this one. */
  readonly unverifiable?: true
  /** The conversation is invented, so no reply can arrive. */
  readonly unanswerable?: true
}

/** A later report of the platform that it could not deliver a message of the bot. */
export interface DeliveryReport {
  /** The id that `Channel.send` returned. */
  readonly message: string
  /** The platform's code and words, for operators. */
  readonly error: string
}

export interface Webhook {
  readonly path: `/${string}`
  /** The largest accepted body in bytes; 65,536 unless given. */
  readonly bodyBytesMax?: number
  /** The configuration key whose absence leaves requests unverified. Absent when every request is verified. */
  readonly unsigned?: string
  /** The URL that is registered with the platform, where the configuration names it. */
  readonly registered?: string
  /** Answers a POST request by which a service checks the URL, before anything of it is verified; undefined for an event. */
  contact?(request: Contact): Response | undefined
  /** Answers the platform's GET request that checks the URL. */
  handshake?(url: URL): Response
  /** The query of that GET request as the platform sends it with this challenge, for operators who try a set-up. */
  handshakeQuery?(challenge: string): Readonly<Record<string, string>>
  /**
   * Verifies the raw bytes before anything is parsed. Throws `unauthorized` with the same message for every reason; its
   * `cause` is the reason as a text without secrets, for the log and for operators.
   */
  verify(raw: Raw): Verified | Promise<Verified>
  /**
   * True when the result of `parse` depends on `body` and the configuration alone. The daemon then stores the body in place of the
   * messages, and parses it again, without headers, after a restart and for a replay.
   */
  readonly parsesBodyAlone?: true
  /** Returns the messages of a request without the channel's own messages and other events. Throws `invalid_request`. */
  parse(raw: Raw): readonly Inbound[] | Promise<readonly Inbound[]>
  /** Returns the reports in a verified request that the platform could not deliver earlier messages. */
  reports?(raw: Raw): readonly DeliveryReport[]
  /**
   * Returns the answer to a verified request once its messages are durable, for a platform that expects another one than
   * `{"status":"ok"}`, such as a challenge or the instructions for a call. Undefined is the usual answer. Repeats are answered, too.
   */
  answer?(raw: Raw): Response | undefined | Promise<Response | undefined>
  /** Makes a request for operators who try a set-up without the platform. Throws `invalid_request` for impossible values. */
  sample(sample: Sample): SampleRequest
}

/** The limits of a platform for replies to one message of a person. */
export interface ReplyWindow {
  /** From the time when the person wrote the message. */
  readonly seconds: number
  /** How many messages may answer one message. Absent when any number may. */
  readonly count?: number
  /**
   * What a late or surplus reply is. `closed`: refused, so the outbox schedules no retry beyond the window. `proactive`: accepted as
   * a message of its own, so the outbox sends it without `Address.replyTo`.
   */
  readonly after: 'closed' | 'proactive'
}

export interface Channel {
  /** Equals the `channel` of the catalogue row. */
  readonly name: string
  /** The allowlist: `*` accepts every sender, an empty list none. The daemon filters; a channel never does. */
  readonly allow: readonly string[]
  /** Returns the canonical form of a sender, such as E.164. Senders are compared as written unless it is given. */
  normalise?(sender: string): string
  /** Tells whether an allowlist entry that is not the sender's canonical form covers the sender, such as a mail domain. */
  matches?(entry: string, sender: string): boolean
  /** Receives messages over HTTP. */
  readonly webhook?: Webhook
  /**
   * Receives messages over one connection, or by polling, until it ends: resolves when the platform asks for another connection
   * or soon after `context.signal` aborts, and rejects with the reason when the connection broke or could not be opened. Never
   * tries again by itself: the daemon does, and knows the health. An error with `retryAfterSecs` prolongs the delay; `forbidden`
   * and `unauthorized` mean that only the operator can help.
   */
  listen?(deliver: Deliver, context: ListenContext): Promise<void>
  /** Links this channel to an account as a device of its own. Absent where the configuration has the credentials. */
  readonly link?: ChannelLink
  /** The positions of a channel that listens. */
  readonly cursors?: ListenCursors
  /**
   * Sends one message of at most `limits.text`. Throws an `AppError`: after `rate_limited` and `unavailable` the message was
   * not sent and the outbox retries; `invalid_request` and `forbidden` are final; after any other code the message may have
   * been sent, and the outbox retries only where the platform drops repeats. Must not follow a redirect with a credential.
   */
  send(to: Address, message: Outbound, signal: AbortSignal): Promise<Sent>
  /** Replaces the text of a sent message on platforms that can edit. Throws as `send` does; the same text again is not an error. */
  update?(to: Address, sent: Sent, message: Outbound, signal: AbortSignal): Promise<void>
  readonly limits: {
    /** The longest text of one message, counted in `unit`. */
    readonly text: number
    readonly unit: 'utf16' | 'codepoint' | 'byte'
    /** The platform drops a second message with the same `clientId`, so an uncertain send may be repeated. */
    readonly dedupesClientIds?: true
    /** For this long after a message was sent, the platform drops a repeat with the same `Outbound.clientId`. */
    readonly dedupesForMs?: number
    /** How long the platform accepts replies to a message; a function where conversations differ. Absent when it sets no limit. */
    readonly replyWindow?: ReplyWindow | ((to: Address) => ReplyWindow)
    /** How many attachments one message can carry, and the largest size of each. Absent when the channel sends none. */
    readonly attachments?: { readonly count: number; readonly bytesMax: number }
  }
  /** What the platform shows of a formatted reply. Absent: the channel receives the Markdown of the agent. */
  readonly markup?: Markup
  /** The destination of notifications: the target name of this channel, and its configured conversation. */
  readonly notifications?: {
    /** Equals the `target` of the catalogue row. A channel outside the catalogue chooses a lower-case name. */
    readonly target: string
    /** Whether a message with a `topic` opens a thread, where its discussion continues. Elsewhere people answer it by quoting it. */
    readonly opensThreads: boolean
    /** The account that sends the notifications. */
    readonly account: string
    /** Absent when no conversation is configured; then only events that name a conversation are sent. */
    readonly to?: Address
    /** The configuration key that sets the conversation, for messages to operators. */
    readonly key: string
  }
  /**
   * Set when the platform names a quoted message of the bot by another id than `send` returns. A quote of a question then cannot be told
   * from a quote of another message, and a keyword that quotes something counts like a keyword alone.
   */
  readonly quotesByOtherIds?: true
  /**
   * Set when the platform may report an edit or a deletion of a message without the thread of the message, or with another one. The message is
   * then looked for in all threads of its room.
   */
  readonly changesLackThread?: true
  /** The shortest time between two edits of a draft reply. Absent when the channel shows no drafts. Needs `update`. */
  readonly draftEveryMs?: number
  /**
   * Shows a draft reply as a preview: no message, and removed by the platform itself with the next message of the bot, or within a minute. So a
   * crash leaves nothing behind. An empty text shows that the reply is being written. All previews of one reply have the same `clientId`.
   * Resolves to false where the conversation has no previews; a draft is then a message that `update` edits. Needs `draftEveryMs`. The daemon
   * repeats the call every few seconds.
   */
  preview?(to: Address, message: Outbound, signal: AbortSignal): Promise<boolean>
  /** Shows for a few seconds that a reply is being written. */
  typing?(to: Address, signal: AbortSignal): Promise<void>
  /**
   * Shows the sender that the message was accepted, such as by a reaction. The daemon calls it once, when the turn of the message
   * begins for the first time: after the allowlist and the limits, and never for a command, an answer to an approval, a message that a
   * procedure takes, or a replayed message. The turn does not wait for it, and a failure is only logged.
   */
  acknowledge?(message: Inbound, signal: AbortSignal): Promise<void>
  /**
   * Replaces the commands in the menu of the platform; none removes them. The daemon calls it when the channel begins, when the texts of the
   * commands change, and when the channel goes, and tries again after a failure. People can also write a command that no menu shows.
   */
  offerCommands?(commands: readonly OfferedCommand[], signal: AbortSignal): Promise<void>
  /**
   * Downloads an inbound attachment of at most `bytesMax` bytes. The daemon calls it when the turn begins, after the
   * allowlist. Throws an `AppError`: `unavailable` may succeed later, any other code is final.
   */
  fetchMedia?(attachment: Attachment, options: { readonly bytesMax: number; readonly signal: AbortSignal }): Promise<Media>
  /** The configuration that is missing and without which the channel cannot work, such as `oauth_token or refresh_token`. */
  readonly missingConfig?: string
  /** Returns the known state of a channel that does not listen. Makes no request. */
  health?(): ChannelHealth
}
