/** The states of messages and replies, for lists and filters. */

export const INBOX_STATES = ['pending', 'running', 'done', 'dead', 'limited', 'discarded'] as const
export const OUTBOX_STATES = ['queued', 'sending', 'failed', 'sent', 'ambiguous', 'dead', 'discarded'] as const

/** The states that only an operator changes, by a replay. */
export const REPLAYABLE_MESSAGES = ['dead', 'limited'] as const
export const REPLAYABLE_REPLIES = ['dead', 'ambiguous'] as const
