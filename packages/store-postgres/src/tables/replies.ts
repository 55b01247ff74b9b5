/** Replies as rows of the outbox. Statements of several groups queue them. */
import { randomUUID } from 'node:crypto'
import { type MessageNews, type NewReply, shardOfConversation } from '@sluice/sdk'
import { columnsOf } from '../connection/database.ts'

const COLUMNS = 'shard, channel, account, to_json, text, part, parts, client_id, turn_id, created_at, extras_json, trace, is_edit, reply'

/** The number of parameters that `replyValues` returns. */
export const REPLY_PARAMETERS = 15

/**
 * Returns the SQL that queues replies, in order, and returns their numbers. `first` is the number of its first parameter. `inbox` is the
 * SQL of the message that they answer, and `from` is further SQL that selects from `reply`, whose `owner` tells replies of several
 * writes apart.
 */
export const insertReplies = (first: number, inbox: string, from: string): string => {
  const types = [
    'int',
    'smallint',
    'text',
    'text',
    'text',
    'text',
    'int',
    'int',
    'text',
    'text',
    'float8',
    'text',
    'text',
    'boolean',
    'text',
  ]
  const parameters = types.map((type, at) => `$${first + at}::${type}[]`).join(', ')
  return `INSERT INTO outbox (${COLUMNS}, inbox)
    SELECT ${COLUMNS.split(', ')
      .map((column) => `reply.${column}`)
      .join(', ')}, ${inbox}
    FROM unnest(${parameters}) WITH ORDINALITY AS reply (owner, ${COLUMNS}, place) ${from} ORDER BY reply.place`
}

/** Returns the parameters of `insertReplies`. */
export function replyValues(replies: readonly { readonly owner: number; readonly reply: NewReply }[]): unknown[][] {
  let parts = ''
  const rows = replies.map(({ owner, reply }) => {
    if (reply.parts > 1 && (reply.part === 1 || parts === '')) parts = randomUUID()
    const row = { owner, reply, id: reply.parts > 1 ? parts : null }
    if (reply.part >= reply.parts) parts = ''
    return row
  })
  return columnsOf(
    rows,
    ({ owner }) => owner,
    ({ reply }) => shardOfConversation(reply),
    ({ reply }) => reply.channel,
    ({ reply }) => reply.account,
    ({ reply }) => JSON.stringify(reply.to),
    ({ reply }) => reply.text,
    ({ reply }) => reply.part,
    ({ reply }) => reply.parts,
    ({ reply }) => reply.clientId,
    ({ reply }) => reply.turnId,
    ({ reply }) => reply.createdAtMs,
    ({ reply }) => (reply.extras ? JSON.stringify(reply.extras) : null),
    ({ reply }) => reply.trace ?? null,
    ({ reply }) => reply.extras?.edits !== undefined,
    ({ id }) => id,
  )
}

/** The parameters for the replies of one write. */
export const valuesOf = (replies: readonly NewReply[]): unknown[][] => replyValues(replies.map((reply) => ({ owner: 0, reply })))

export const numbersOf = (rows: readonly { readonly number: number }[]): number[] => rows.map(({ number }) => number)

/** Records who is held back, and queues the notice if that is news. Selects whether it is, and the numbers of the notice. */
export const QUEUE_NEWS = `
  WITH held AS (SELECT hold_back($1, $2, $3, $4, $5) AS is_news),
    queued AS (${insertReplies(6, 'NULL::bigint', 'WHERE EXISTS (SELECT 1 FROM held WHERE is_news)')} RETURNING number)
  SELECT NULL AS number, is_news FROM held UNION ALL SELECT number, NULL FROM queued`

/** The parameters of `QUEUE_NEWS`. */
export const newsValues = ({ held: { client, cause, sinceMs, untilMs }, quietMs, notice }: MessageNews): unknown[] => [
  client,
  cause,
  sinceMs,
  untilMs,
  quietMs,
  ...valuesOf(notice),
]
