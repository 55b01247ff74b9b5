/** Sample turns and messages with defaults for every member a rule does not care about. */
import { MAIN_AGENT, type ModelMessage, type QueuedTurn, type TurnEnd } from '@sluice/sdk'

/** A message of the user. */
export const user = (text: string): ModelMessage => ({ role: 'user', content: [{ type: 'text', text }] })

/** A message of the model. */
export const assistant = (text: string): ModelMessage => ({ role: 'assistant', content: [{ type: 'text', text }] })

/** A turn that is queued. */
export const queuedTurn = (id: string, part: Partial<QueuedTurn> = {}): QueuedTurn => ({
  id,
  agent: MAIN_AGENT,
  sessionId: 'room',
  owner: 'device',
  source: 'webhook',
  input: `input of ${id}`,
  context: null,
  createdAtMs: 1_000,
  ...part,
})

/** A successful turn with one question and one answer. */
export const turnEnd = (id: string, part: Partial<TurnEnd> = {}): TurnEnd => ({
  id,
  agent: MAIN_AGENT,
  sessionId: 'room',
  owner: 'device',
  source: 'webhook',
  status: 'done',
  input: `input of ${id}`,
  response: `response of ${id}`,
  model: 'offline',
  error: null,
  inputTokens: 3,
  outputTokens: 5,
  costUsd: 0.25,
  attempts: 1,
  createdAtMs: 1_000,
  endedAtMs: 2_000,
  messages: [user(`input of ${id}`), assistant(`response of ${id}`)],
  ...part,
})

/** A failed turn; none of its messages enter the session's history. */
export const failedTurn = (id: string, part: Partial<TurnEnd> = {}): TurnEnd =>
  turnEnd(id, { status: 'failed', response: null, model: null, error: { code: 'upstream', message: 'no answer' }, messages: [], ...part })

/** Texts that a careless store corrupts: NUL, half a surrogate pair, right-to-left, wildcards, quotes, a long text. */
export const ODD_TEXTS: readonly string[] = [
  '',
  ' ',
  'a\0b',
  '\0',
  'a\ud800b',
  '\udc00',
  'naïve 👩‍👩‍👧 שלום',
  '100%_sure\\',
  `it's "quoted"`,
  "'; DROP TABLE turns; --",
  'x'.repeat(100_000),
]
