/** What a crash run saw, in its order, and what the store held: plain data, and all that the checks look at. */

export type ChannelName = 'chatapp' | 'textrelay' | 'bizchat' | 'roomchat' | 'mailpush'
/** `webhook`: the generic `POST /webhook`. */
export type KindName = ChannelName | 'webhook'

/** One message somebody sent us. */
export interface Message {
  /** Stands in its text and in everything that comes of it. */
  readonly mark: string
  readonly kind: KindName
  /** Everything one sender sends us is one session. */
  readonly sender: string
  /** The provider's id of it; of a webhook, its idempotency key. */
  readonly id: string
  /** Of its reply; 0: nobody is sent one. */
  readonly parts: number
  /** Its turn calls a tool before it answers. */
  readonly usesTool: boolean
  /** Its turn calls a tool that a person has to approve, and this is what becomes of the question. Absent: nobody is asked. */
  readonly gate?: Gate
  /** It answers the question that the turn of another message asked. */
  readonly answers?: Answer
}

/** `withdrawn`: the turn is aborted while a person answers, so that either may come first. */
export type Gate = 'approved' | 'rejected' | 'withdrawn'

export interface Answer {
  readonly mark: string
  readonly approve: boolean
}

/** One part of the reply to a message, from 1. */
export interface Part {
  readonly mark: string
  readonly part: number
}

/** The part that stands for the prompt which asks a person about the tool call of a message. */
export const PROMPT_PART = 0

/** `limited`, `away`: refused with a time to come back. `reset`: broken before anything was done. `lost`: done, the answer lost. */
export type FaultName = 'limited' | 'away' | 'reset' | 'lost' | 'slow'

/** A life of the daemon, from its process to the end of it. */
export type Lived =
  | { readonly type: 'started'; readonly wallMs: number }
  | { readonly type: 'ending'; readonly wallMs: number }
  | { readonly type: 'ended'; readonly by: 'SIGKILL' | 'SIGTERM'; readonly code: number | null; readonly wallMs: number }

export type Seen =
  | Lived
  /** Each attempt of the provider, and its good end. */
  | { readonly type: 'posted'; readonly marks: readonly string[] }
  | { readonly type: 'acked'; readonly marks: readonly string[] }
  /** Answered with something else than "come again". */
  | { readonly type: 'refused'; readonly marks: readonly string[]; readonly status: number }
  /** A request to the model. */
  | { readonly type: 'asked'; readonly mark: string; readonly afterTool: boolean; readonly told?: Told }
  /** The question that its turn asks a person was seen to be open for the first time. */
  | { readonly type: 'waiting'; readonly mark: string }
  /** What the tool does in the world. */
  | { readonly type: 'effect'; readonly mark: string }
  /** A request to a provider that sends. */
  | { readonly type: 'sending'; readonly channel: ChannelName; readonly parts: readonly Part[]; readonly fault: FaultName | null }
  /** A look at a copy of the store while no daemon ran. */
  | { readonly type: 'inspected'; readonly kept: readonly string[]; readonly done: readonly string[]; readonly problems: readonly string[] }
  /** Something the model or a tool was asked that makes no sense. */
  | { readonly type: 'nonsense'; readonly detail: string }

/** What the model was told of a call that needs approval. `cut`: the daemon ended while it ran. */
export type Told = 'ran' | 'refused' | 'cut' | 'something else'

export interface History {
  /** `[delivery] max_attempts`. */
  readonly attemptsMax: number
  readonly messages: readonly Message[]
  readonly seen: readonly Seen[]
  /** What each provider has in the end; a repeat it dropped is not there. */
  readonly delivered: readonly { readonly channel: ChannelName; readonly parts: readonly Part[] }[]
}

export interface InboxSeen {
  readonly number: number
  readonly channel: string
  readonly account: string
  readonly id: string
  readonly state: string
  readonly attempts: number
  /** It was taken as the answer to a question, and no turn runs for it. */
  readonly isAnswer: boolean
}

export interface QuestionSeen {
  readonly mark: string
  /** The conversation it was asked in. */
  readonly place: string
  readonly state: string
}

/** What people were told of a question. `late`: to somebody who answered when it had been decided. */
export interface NoticeSeen {
  readonly place: string
  readonly says: 'approved' | 'rejected' | 'cancelled' | 'late'
}

export interface OutboxSeen {
  readonly number: number
  readonly channel: string
  readonly parts: readonly Part[]
  readonly state: string
  readonly attempts: number
  /** Ambiguous because the daemon ended in the middle. */
  readonly isCut: boolean
  /** Wall clock. */
  readonly endedAtMs: number | null
}

export interface StoreView {
  /** Of the file itself. */
  readonly problems: readonly string[]
  readonly inbox: readonly InboxSeen[]
  readonly outbox: readonly OutboxSeen[]
  readonly questions: readonly QuestionSeen[]
  readonly notices: readonly NoticeSeen[]
  /** The effects of approved calls, as the file has them. */
  readonly lines: readonly string[]
  /** The marks a session's history answers, in its order: each is a turn whose end was committed. */
  readonly sessions: readonly (readonly string[])[]
  /** Of `POST /webhook`: marks of kept turns that have not ended, and of those that failed. */
  readonly unfinished: readonly string[]
  readonly failed: readonly { readonly mark: string; readonly attempts: number }[]
}

/** Something that must not be. */
export interface Violation {
  readonly rule: string
  readonly detail: string
}

export const nameOf = ({ mark, part }: Part): string => `${mark}/${part}`

/** The session a message belongs to, as far as the driver knows. */
export const laneOf = ({ kind, sender }: Message): string => `${kind} ${sender}`
