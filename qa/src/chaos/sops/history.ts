/** What a crash run of procedures saw, in its order, and what the store held: plain data, and all that its checks look at. */
import type { Approval, AuditRow, OutboxRow, SopDispatch, SopRun } from '@sluice/sdk'
import type { Lived } from '../history.ts'

/** One event somebody posts, again and again until it is taken. */
export interface PostedEvent {
  /** Its idempotency key; stands in its payload and in every effect that comes of it. */
  readonly mark: string
  readonly path: string
  /** The procedures it has to start or to be held back from, each once. */
  readonly sops: readonly string[]
}

/** How somebody answers. */
export type Means = 'http' | 'press' | 'reply' | 'command'

/** One attempt to decide an approval. */
export interface Attempt {
  /** Unique; it is the feedback where there is any. */
  readonly tag: string
  readonly run: string
  readonly step: string
  readonly means: Means
  readonly approve: boolean
  /** The beginning of who that is, in the books. */
  readonly by: string
  /** False for somebody who has no say. */
  readonly isEntitled: boolean
}

/** What a step does in the world; `step` of `sop`, for the event `mark`. */
export interface Effect {
  readonly sop: string
  readonly step: number
  readonly mark: string
}

export type Seen =
  | Lived
  /** The answer that tells what became of an event, and the answer that it was taken before. */
  | { readonly type: 'accepted'; readonly mark: string; readonly results: readonly SopDispatch[] }
  | { readonly type: 'duplicate'; readonly mark: string }
  | { readonly type: 'refused'; readonly mark: string; readonly status: number }
  /** A run that was started by hand, and told. */
  | { readonly type: 'begun'; readonly run: string }
  | ({ readonly type: 'effect' } & Effect)
  /** An approval that a program asked for is open. */
  | { readonly type: 'opened'; readonly run: string; readonly step: string }
  | ({ readonly type: 'deciding' } & Attempt)
  /** The answer to an attempt: it counts, or how it had been decided before. */
  | { readonly type: 'won'; readonly tag: string }
  | { readonly type: 'lost'; readonly tag: string; readonly state: string }
  | { readonly type: 'told'; readonly run: string; readonly step: string; readonly state: string }
  /** A subscriber came, left and came back; `untilMs` is when the last event happened that it saw in this life. */
  | { readonly type: 'followed'; readonly fromMs: number; readonly untilMs: number }
  /** A look at a copy of the store while no daemon ran. */
  | { readonly type: 'inspected'; readonly runs: readonly string[]; readonly problems: readonly string[] }
  | { readonly type: 'nonsense'; readonly detail: string }

export interface SopsHistory {
  readonly events: readonly PostedEvent[]
  readonly seen: readonly Seen[]
  /** Texts the messenger has in the end, edits included. */
  readonly delivered: readonly string[]
}

export interface SopsView {
  /** Of the file and of the chain of the audit log. */
  readonly problems: readonly string[]
  readonly runs: readonly SopRun[]
  readonly audit: readonly AuditRow[]
  readonly approvals: readonly Approval[]
  readonly outbox: readonly OutboxRow[]
  /** What commands have left behind. */
  readonly lines: readonly Effect[]
}

/** One name for what a step does for one event. */
export const effectName = ({ sop, step, mark }: Effect): string => `${sop}/${step} of ${mark}`

/** One name for one approval. */
export const gateName = (run: string, step: string): string => `${run} ${step}`

/** The mark of the event that started a run: what its effects are known by. */
export function markOf({ event: { payload, source } }: SopRun): string {
  const values = JSON.parse(payload ?? '{}') as { readonly mark?: string; readonly scheduled_at?: string }
  return (source === 'cron' ? values.scheduled_at : values.mark) ?? ''
}
