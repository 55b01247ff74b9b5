/** The port of every chat platform: data and pure functions; the gateway is the pipeline around them (§2.3, §4.2). */

/** Headers with lower-case names, the body as it came, and nothing decoded. */
export interface Raw {
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly url: URL
  readonly body: Uint8Array
  readonly receivedAtMs: number
}

/** Where a reply goes, in the channel's own terms; opaque to everybody else, and JSON. */
export interface Address {
  /** The conversation: a number, a room, a chat. */
  readonly to: string
  /** The thread inside it, where the platform has threads. */
  readonly thread?: string
  /** The message being answered, where the platform can quote. */
  readonly replyTo?: string
  /** What else an answer needs, such as the subject of a mail. */
  readonly more?: Readonly<Record<string, string>>
}

export interface Attachment {
  readonly kind: 'image' | 'audio' | 'video' | 'file'
  readonly name: string
  readonly mime?: string
  /** Where to fetch it from, the provider's id of it, or its bytes. What comes in is kept as JSON and has no bytes. */
  readonly source: { readonly url: string } | { readonly id: string } | { readonly bytes: Uint8Array }
}

/** The bytes of an attachment somebody sent. */
export interface Media {
  readonly bytes: Uint8Array
  readonly mime?: string
}

/** One message somebody sent us. */
export interface Inbound {
  /** The provider's own id: with channel and account it is what makes a message run once. Never invented. */
  readonly id: string
  /** The account of ours it came to: a phone number id, a bot name. */
  readonly account: string
  /** A stable identity, matched against the allowlist. */
  readonly sender: string
  readonly to: Address
  readonly text: string
  readonly sentAtMs?: number
  readonly attachments?: readonly Attachment[]
  /** The provider's id of the message it answers by quoting it, where the platform tells. */
  readonly inReplyTo?: string
  /** A button of a message of ours was pressed: that message's provider id, and the button's value. `text` is empty then. */
  readonly pressed?: { readonly message: string; readonly value: string }
}

/** A button under a message of ours. */
export interface Button {
  readonly label: string
  /** Comes back when it is pressed; at most 64 bytes of printable ASCII. */
  readonly value: string
  readonly tone: 'good' | 'bad'
}

/** One message we send. */
export interface Outbound {
  readonly text: string
  /** With their bytes. */
  readonly attachments?: readonly Attachment[]
  /** For platforms that have them; the text makes sense without. In `update`, an absent list takes the buttons away. */
  readonly buttons?: readonly Button[]
  /** Opens a thread for what is said about it, of this title, where the platform opens threads on messages. */
  readonly topic?: string
  /** Stable over retries of one message: platforms that take a client message id are given it. */
  readonly clientId: string
}

/** The provider's id of what was sent, for threads, edits and the outbox. */
export interface Sent {
  readonly id: string
}

/** Resolves once the message is durable; rejects with `unavailable` when it could not be kept. */
export type Deliver = (inbound: Inbound) => Promise<void>

export interface ChannelHealth {
  readonly state: 'ok' | 'connecting' | 'down'
  readonly detail?: string
  readonly lastEventAtMs?: number
  readonly lastSentAtMs?: number
}

/** What a check of a request's origin found. */
export interface Verified {
  /** What proved it, such as the header's name; or, where nothing did, what is missing. For the inspector. */
  readonly by: string
  /** A value the provider never uses again: the gateway refuses a second request with it. */
  readonly once?: string
}

/** What an operator wants to see arrive. */
export interface Sample {
  readonly sender: string
  /** The conversation it is in, where answers go to a conversation and not to the sender; default: one the channel makes up. */
  readonly to?: string
  readonly text: string
  /** The provider's message id. */
  readonly id: string
  readonly atMs: number
  /** True: an event of the same provider that is no message, so that nothing runs. */
  readonly ignored?: true
}

/** A request as the provider sends it, proved with the configured secret. Throws `invalid_request` for what cannot be in one. */
export interface SampleRequest {
  readonly headers: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string>>
  readonly body: string
  /** Nobody but the provider can prove it, so it has to be refused. */
  readonly unproved?: true
  /** Its conversation is made up, so no answer can arrive. */
  readonly unanswerable?: true
}

export interface Webhook {
  readonly path: `/${string}`
  /** Default 65,536. */
  readonly bodyBytesMax?: number
  /** The key whose absence leaves requests unproved; absent: every request is proved. */
  readonly unsigned?: string
  /** The URL that is registered with the provider, where the configuration names it. */
  readonly registered?: string
  /** The provider's GET check. */
  handshake?(url: URL): Response
  /** The query of that check as the provider sends it, with this challenge; for operators who try their set-up. */
  handshakeQuery?(challenge: string): Readonly<Record<string, string>>
  /**
   * Over raw bytes, before anything is parsed. Throws `AppError('unauthorized')` with one message for every reason; the
   * reason is its `cause`, a text without secrets for the log and the inspector.
   */
  verify(raw: Raw): Verified | Promise<Verified>
  /** Bytes to messages; own messages and everything that is no message are already dropped. Throws `invalid_request`. */
  parse(raw: Raw): readonly Inbound[] | Promise<readonly Inbound[]>
  /** For operators who try their set-up without the provider. */
  sample(sample: Sample): SampleRequest
}

export interface Channel {
  /** Equal to the catalogue row's `channel`. */
  readonly name: string
  /** `*` allows all, empty denies all; the gateway filters, a channel never does. */
  readonly allow: readonly string[]
  /** The form two spellings of one sender share, such as E.164; default: as written. */
  normalise?(sender: string): string
  /** Whether an entry of the list that is not the sender's own form covers the (normalised) sender, such as a mail domain. */
  matches?(entry: string, sender: string): boolean
  /** Inbound over HTTP. */
  readonly webhook?: Webhook
  /**
   * Inbound over a connection we hold, or fetched. Resolves soon after `signal` aborts; a rejection is retried with backoff.
   */
  listen?(deliver: Deliver, signal: AbortSignal): Promise<void>
  /**
   * Sends one message of at most `limits.text`. Throws `AppError`: `rate_limited` and `unavailable` were not sent and are
   * retried, `invalid_request` and `forbidden` never will be; anything else may have been sent, and is not sent again unless
   * the platform drops repeats. Follows no redirect with a credential.
   */
  send(to: Address, message: Outbound, signal: AbortSignal): Promise<Sent>
  /** Replaces the text of a sent message, where the platform can edit; throws like `send`. The same text again is no error. */
  update?(to: Address, sent: Sent, message: Outbound, signal: AbortSignal): Promise<void>
  readonly limits: {
    /** The longest text of one message, counted in `unit`. */
    readonly text: number
    readonly unit: 'utf16' | 'codepoint' | 'byte'
    /** The platform drops a second message with the same `clientId`, so an uncertain send may be repeated. */
    readonly dedupesClientIds?: true
    /** Attachments it can send: how many in one message, and how large each. Absent: none. */
    readonly attachments?: { readonly count: number; readonly bytesMax: number }
  }
  /** Where notifications go (§2.5): the dispatch target that means this channel, and the conversation configured for it. */
  readonly notifications?: {
    readonly target: 'community' | 'workspace' | 'messenger'
    /** The account of ours that speaks. */
    readonly account: string
    /** Absent: none is configured, and only an event that names its own is sent. */
    readonly to?: Address
    /** The key that would configure it, for messages to operators. */
    readonly key: string
  }
  /** Replies are shown while they are made, by `update`, not more often than this. Needs `update`. */
  readonly draftEveryMs?: number
  /** Shows for a few seconds that an answer is being made. */
  typing?(to: Address, signal: AbortSignal): Promise<void>
  /**
   * The bytes of an attachment that came in, at most `bytesMax`; asked for as the turn begins, after the allowlist. Throws
   * `AppError`: `unavailable` may succeed later, anything else never will.
   */
  fetchMedia?(attachment: Attachment, options: { readonly bytesMax: number; readonly signal: AbortSignal }): Promise<Media>
  /** What it is configured without and cannot do its work without, such as `oauth_token or refresh_token`; for operators. */
  readonly lacks?: string
  /** Passive: what is known, never a request. */
  health?(): ChannelHealth
}
