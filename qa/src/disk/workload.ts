/** The child's work. All of it is computed from the number of an arrival, so that the audit knows what to expect. */
import type { Arrival, NewReply } from '@sluice/sdk'

const CHANNEL = 'textrelay'
const ACCOUNT = 'line'
const SESSIONS = 5
/** The time of the first arrival in milliseconds since 1970. */
export const AT_MS = Date.UTC(2026, 0, 1)

/** Every seventh arrival has a body larger than a page. */
const LARGE_EVERY = 7
const LARGE_BYTES = 9_000
const SMALL_BYTES = 300

/** A message request. Every third arrival holds two messages, and every fourth has a nonce. */
export function arrivalOf(at: number): Arrival {
  return {
    channel: CHANNEL,
    verdict: `proof of ${at}`,
    // Every other arrival stores its messages instead.
    raw: at % 2 === 0 ? null : Buffer.alloc(at % LARGE_EVERY === 0 ? LARGE_BYTES : SMALL_BYTES, `body of ${at}. `),
    receivedAtMs: AT_MS + at,
    ...(at % 4 === 1 && { nonce: { value: `nonce of ${at}`, untilMs: AT_MS + 3_600_000 } }),
    messages: messageIdsOf(at).map((id) => ({
      message: { id, account: ACCOUNT, sender: `sender of ${id}`, to: { to: `room ${at}` }, text: `text of ${id}` },
      session: `session ${at % SESSIONS}`,
    })),
  }
}

/** The ids of an arrival's messages. */
export const messageIdsOf = (at: number): string[] => (at % 3 === 2 ? [`${at}.0`, `${at}.1`] : [`${at}.0`])

/** How often the arrival is sent at once. */
export const copiesOf = (at: number): number => (at % 5 === 0 ? 2 : 1)

/** Whether the turn of the arrival's first message is run to its end. */
export const isAnswered = (at: number): boolean => at % 2 === 0

/** Whether the first reply is sent. */
export const isSent = (at: number): boolean => at % 4 === 0

/** Whether a procedure runs and is approved. */
export const isFired = (at: number): boolean => at % 4 === 2

/** The id of the arrival's procedure run. */
export const runIdOf = (at: number): string => `run ${at}`

/** The id of the arrival's turn. */
export const turnIdOf = (at: number): string => `turn ${at}`

/** The replies to an arrival's first message. */
export function repliesOf(at: number): NewReply[] {
  const parts = isSent(at) ? 2 : 1
  return Array.from({ length: parts }, (_, index) => ({
    channel: CHANNEL,
    account: ACCOUNT,
    to: { to: `room ${at}` },
    text: `part ${index + 1} of the reply to ${at}`,
    part: index + 1,
    parts,
    clientId: `${at}/${index + 1}`,
    turnId: turnIdOf(at),
    createdAtMs: AT_MS + at,
  }))
}

/** The platform id of the sent reply. */
export const providerIdOf = (at: number): string => `sent ${at}`
