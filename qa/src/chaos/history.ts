/** The data of a crash run: the recorded events in their order and a view of the store. The checks read nothing else. */

/** The name of a channel, or `webhook` for the generic `POST /webhook`. */
export type KindName = string

/** One message that a sender wrote. */
export interface Message {
  /** Appears in its text, in requests to the model, and in the reply. */
  readonly mark: string
  readonly kind: KindName
  /** All messages of one sender are one session. */
  readonly sender: string
  /** The platform's id of the message; for `webhook`, the idempotency key. */
  readonly id: string
  /** True when the platform keeps it and the daemon fetches it. */
  readonly isPulled?: true
  /** Parts of its reply; 0 if no reply is sent. */
  readonly parts: number
  /** Its turn calls a tool before it answers. */
  readonly usesTool: boolean
  /** Its turn calls a tool that a person has to approve; the value is the intended decision. Absent: no person is asked. */
  readonly gate?: Gate
  /** It answers the question that the turn of another message asked. */
  readonly answers?: Answer
}

/** `withdrawn`: the turn is aborted at the moment when a person answers, so that either may come first. */
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

/** The number of the prompt that asks a person about the tool call of a message; replies are numbered from 1. */
export const PROMPT_PART = 0

/** `limited`, `away`: refused with a Retry-After header. `reset`: the connection broke before the send. `lost`: it broke after the send. */
export type FaultName = 'limited' | 'away' | 'reset' | 'lost' | 'slow'

/** The life of one daemon process. */
export type Lived =
  | { readonly type: 'started'; readonly wallMs: number }
  | { readonly type: 'ending'; readonly wallMs: number }
  | { readonly type: 'ended'; readonly by: 'SIGKILL' | 'SIGTERM'; readonly code: number | null; readonly wallMs: number }

export type Seen =
  | Lived
  /** Each attempt of the platform to deliver, and its success. */
  | { readonly type: 'posted'; readonly marks: readonly string[] }
  | { readonly type: 'acked'; readonly marks: readonly string[] }
  /** Refused with another status than 503. */
  | { readonly type: 'refused'; readonly marks: readonly string[]; readonly status: number }
  /** A direct request got an answer that names its turn. `text`: the reply, if the request waited for it. */
  | { readonly type: 'answered'; readonly mark: string; readonly turn: string; readonly text?: string }
  /** The sender learned that its direct request failed with this code. Its key is free again, and the sender repeats the request. */
  | { readonly type: 'failed'; readonly mark: string; readonly code: string }
  /** A node of a cluster lost the world, which has the model, or has it again. */
  | { readonly type: 'world'; readonly node: string; readonly isCut: boolean }
  /** A request to the model. `result`: of a call that needs approval, if the request ends with it. */
  | { readonly type: 'asked'; readonly mark: string; readonly afterTool: boolean; readonly result?: CallResult }
  /** The question of its turn was listed as open for the first time. */
  | { readonly type: 'waiting'; readonly mark: string }
  /** The effect of the tool outside of the daemon. */
  | { readonly type: 'effect'; readonly mark: string }
  /** A request to a platform that sends parts of replies. */
  | { readonly type: 'sending'; readonly channel: string; readonly parts: readonly Part[]; readonly fault: FaultName | null }
  /** A copy of the store was read while no daemon ran. */
  | { readonly type: 'inspected'; readonly kept: readonly string[]; readonly done: readonly string[]; readonly problems: readonly string[] }
  /** A request that no message of the run explains. */
  | { readonly type: 'unexpected'; readonly detail: string }

/** The result that the model got of a call that needs approval. `interrupted`: the daemon ended while the call ran. */
export type CallResult = 'ran' | 'refused' | 'interrupted' | 'other'

export interface History {
  /** `[delivery] max_attempts`. */
  readonly attemptsMax: number
  /** The channels whose platform drops repeats, so that no reply to it is ever ambiguous. */
  readonly dropRepeats: readonly string[]
  readonly messages: readonly Message[]
  readonly seen: readonly Seen[]
  /** The messages that each platform has in the end, without the repeats that it dropped. */
  readonly delivered: readonly { readonly channel: string; readonly parts: readonly Part[] }[]
}

export interface InboxSeen {
  readonly number: number
  readonly channel: string
  readonly account: string
  readonly id: string
  readonly state: string
  readonly attempts: number
  /** It answers a question, and no turn runs for it. */
  readonly isAnswer: boolean
}

export interface QuestionSeen {
  readonly mark: string
  /** The conversation in which it was asked. */
  readonly place: string
  readonly state: string
}

/** A notice of the end of a question. `late`: for a person who answered after the decision. */
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
  /** It is ambiguous because the daemon ended while sending it. */
  readonly isInterrupted: boolean
  readonly error: string | null
  /** Wall clock. */
  readonly endedAtMs: number | null
}

export interface StoreView {
  /** Problems of the database file itself. */
  readonly problems: readonly string[]
  readonly inbox: readonly InboxSeen[]
  readonly outbox: readonly OutboxSeen[]
  readonly questions: readonly QuestionSeen[]
  readonly notices: readonly NoticeSeen[]
  /** Marks of the approved calls that wrote a line into the file of effects. */
  readonly lines: readonly string[]
  /** For each session, the marks that its history answers, in order: each is a turn whose end was committed. */
  readonly sessions: readonly (readonly string[])[]
  /** For each session with a summary, the marks of the messages that it covers, and the marks in its text. */
  readonly summaries: readonly { readonly covered: readonly string[]; readonly named: readonly string[] }[]
  /** Stored turns of `POST /webhook` that have not ended, and failed ones. */
  readonly unfinished: readonly string[]
  readonly failed: readonly { readonly mark: string; readonly attempts: number }[]
}

/** A broken rule. */
export interface Violation {
  readonly rule: string
  readonly detail: string
}

export type Report = (rule: string, detail: string) => void

/** An empty list of violations, and the function that adds to it. */
export function reporter(): { readonly found: Violation[]; readonly report: Report } {
  const found: Violation[] = []
  return { found, report: (rule, detail) => void found.push({ rule, detail }) }
}

/** How often each item is in the list. */
export function countsOf<Item>(items: readonly Item[]): Map<Item, number> {
  const counts = new Map<Item, number>()
  for (const item of items) counts.set(item, (counts.get(item) ?? 0) + 1)
  return counts
}

/** The name of a part in violations. */
export const nameOf = ({ mark, part }: Part): string => `${mark}/${part}`

/** The session that the message should belong to. */
export const laneOf = ({ kind, sender }: Message): string => `${kind} ${sender}`
