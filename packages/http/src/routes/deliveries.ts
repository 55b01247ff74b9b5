/** `/api/deliveries`: inbox and outbox, for operators. A dead message or reply can be replayed or discarded. */

import { withMessage } from '@sluice/delivery'
import {
  inboxEntrySchema,
  inboxRowSchema,
  outboxEntrySchema,
  outboxRowSchema,
  shownInboxEntry,
  shownInboxRow,
  shownOutboxEntry,
  shownOutboxRow,
} from '@sluice/delivery/inspector'
import { discardMessage, discardReply, replayMessage, replayReply, unknownMessage, unknownReply } from '@sluice/delivery/replay'
import { REPLAY_MAX, type ReplayResult, replaySelected } from '@sluice/delivery/replay-selected'
import { INBOX_STATES, OUTBOX_STATES, REPLAYABLE_MESSAGES, REPLAYABLE_REPLIES } from '@sluice/delivery/states'
import type { Runtime } from '@sluice/runtime'
import { type AppError, type DeliveryFilter, defineRoute, type Route, wordsOf } from '@sluice/sdk'
import * as v from 'valibot'
import { recordAction } from '../request/record-action.ts'
import { filterText, listText, pageOf, wholeText } from './query.ts'
import { contains, type Search, searchPage } from './search-page.ts'

const PAGE_MAX = 500
const WORDS_CHARS_MAX = 200
/** The entries that one page of a search looks at, which bounds its time. The text of a message is read on its own. */
const ROWS_LOOKED_AT_MAX = 2000
const TEXTS_LOOKED_AT_MAX = 400
const NEXT_PAGE =
  'A page, newest first. Pass `next` as `before` to get the next page; null is the end. A page of a search may be short, or empty, although there is a next one'
const next = v.nullable(v.number())

const replayedSchema = v.object({ replayed: v.literal(true), number: v.number() })

const discardedSchema = v.object({ discarded: v.literal(true), number: v.number() })

const filterSchema = <State extends string>(states: readonly State[]) =>
  v.object({
    limit: wholeText(1, PAGE_MAX, 50),
    before: v.exactOptional(v.pipe(v.string(), v.regex(/^\d{1,15}$/), v.transform(Number))),
    state: listText(states),
    channel: filterText,
  })
type Filter = v.InferOutput<ReturnType<typeof filterSchema<string>>>

/** Words to search for. */
const words = (place: string) =>
  v.exactOptional(
    v.pipe(v.string(), v.minLength(1), v.maxLength(WORDS_CHARS_MAX), v.description(`Only those with these words in ${place}, in any case`)),
  )

/** The body of a replay by filter. */
const selectionSchema = <State extends string>(states: readonly State[]) =>
  v.object({
    state: v.pipe(v.array(v.picklist(states)), v.minLength(1), v.description('The states of the entries to replay')),
    channel: v.exactOptional(v.pipe(v.string(), v.minLength(1))),
    since: v.exactOptional(
      v.pipe(v.string(), v.isoTimestamp(), v.description('Only entries that arrived or were queued at this time or later')),
    ),
  })

const replayedManySchema = v.object({
  replayed: v.array(v.number()),
  too_old: v.pipe(v.array(v.number()), v.description('Entries that stay as they are: their content is no longer kept')),
  more: v.pipe(v.boolean(), v.description(`True if more than ${REPLAY_MAX} entries were selected: repeat the request`)),
})

const replayedAnswer = { 200: { description: 'They are queued; `replayed` has their numbers, oldest first', schema: replayedManySchema } }

const shownReplay = ({ replayed, tooOld, more }: ReplayResult) => ({ replayed, too_old: tooOld, more })

export function deliveryRoutes(runtime: Runtime): Route[] {
  return [
    countsRoute(runtime),
    ...inboxRoutes(runtime),
    replayMessagesRoute(runtime),
    ...discardRoutes(runtime),
    ...outboxRoutes(runtime),
    replayRepliesRoute(runtime),
  ]
}

const countsRoute = ({ store: { inbox, outbox } }: Runtime): Route =>
  defineRoute({
    method: 'GET',
    path: '/api/deliveries',
    summary: 'The number of messages and replies that wait, run or are dead, and all states that there are',
    auth: 'operator',
    answers: {
      200: {
        description: 'Counts by state, without finished ones, and the states for filters',
        schema: v.object({
          inbox: v.object({ pending: v.number(), running: v.number(), dead: v.number() }),
          outbox: v.object({ queued: v.number(), sending: v.number(), failed: v.number(), ambiguous: v.number(), dead: v.number() }),
          states: v.object({ inbox: v.array(v.string()), outbox: v.array(v.string()) }),
        }),
      },
    },
    async handle() {
      const [inboxCounts, outboxCounts] = await Promise.all([inbox.counts(), outbox.counts()])
      return { inbox: inboxCounts, outbox: outboxCounts, states: { inbox: [...INBOX_STATES], outbox: [...OUTBOX_STATES] } }
    },
  })

const inboxRoutes = (runtime: Runtime, { inbox, turns } = runtime.store): Route[] => [
  defineRoute({
    method: 'GET',
    path: '/api/deliveries/inbox',
    summary: 'Messages that arrived over channels',
    auth: 'operator',
    query: v.object({ ...filterSchema(INBOX_STATES).entries, sender: words('their sender'), text: words('their text or error') }),
    answers: { 200: { description: NEXT_PAGE, schema: v.object({ messages: v.array(inboxRowSchema), next }) } },
    async handle({ query: { sender, text, ...filter } }) {
      const isFrom = contains(sender)
      const hasText = contains(text)
      const { page, next } = await listPage(
        filter,
        inbox.list,
        (sender ?? text) !== undefined && {
          lookedAtMax: text === undefined ? ROWS_LOOKED_AT_MAX : TEXTS_LOOKED_AT_MAX,
          isFound: async (row) => isFrom(row.sender) && (hasText(row.error) || hasText(await textOf(runtime, row.number))),
        },
      )
      return { messages: page.map(shownInboxRow), next }
    },
  }),
  defineRoute({
    method: 'GET',
    path: '/api/deliveries/inbox/:number',
    summary: 'One message that arrived, with its request, its turn and its replies',
    auth: 'operator',
    answers: { 200: { description: 'The message', schema: inboxEntrySchema } },
    async handle({ params }) {
      const stored = await inbox.get(numberOf(params, unknownMessage))
      if (!stored) throw unknownMessage(params.number ?? '')
      const entry = await withMessage(runtime.snapshot().channels, stored)
      return shownInboxEntry(entry, entry.turnId === null ? undefined : await turns.get(entry.turnId))
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/api/deliveries/inbox/:number/replay',
    summary: 'Run a finished or dead message again, in a new turn',
    auth: 'operator',
    answers: { 200: { description: 'It is queued', schema: replayedSchema } },
    async handle({ by, params }) {
      const number = numberOf(params, unknownMessage)
      await replayMessage(inbox, number)
      await recordReplay(runtime, by, 'inbox', [number])
      runtime.delivery.wake()
      return { replayed: true, number }
    },
  }),
]

const replayMessagesRoute = (runtime: Runtime, { inbox } = runtime.store): Route =>
  defineRoute({
    method: 'POST',
    path: '/api/deliveries/inbox/replay',
    summary: `Run the oldest messages that a filter selects again, at most ${REPLAY_MAX}, each in a new turn`,
    auth: 'operator',
    body: selectionSchema(REPLAYABLE_MESSAGES),
    answers: replayedAnswer,
    async handle({ by, body: { state: states, since, ...filter } }) {
      const sinceMs = sinceTime(since)
      const result = await replaySelected(inbox, { ...filter, states, isSelected: ({ receivedAtMs }) => receivedAtMs >= sinceMs })
      await recordReplay(runtime, by, 'inbox', result.replayed)
      runtime.delivery.wake()
      return shownReplay(result)
    },
  })

const outboxRoutes = (runtime: Runtime, { outbox, turns } = runtime.store): Route[] => [
  defineRoute({
    method: 'GET',
    path: '/api/deliveries/outbox',
    summary: 'Replies that are sent over channels',
    auth: 'operator',
    query: v.object({ ...filterSchema(OUTBOX_STATES).entries, to: words('their receiver'), text: words('their text or error') }),
    answers: { 200: { description: NEXT_PAGE, schema: v.object({ replies: v.array(outboxRowSchema), next }) } },
    async handle({ query: { to, text, ...filter } }) {
      const isTo = contains(to)
      const hasText = contains(text)
      const { page, next } = await listPage(
        filter,
        outbox.list,
        (to ?? text) !== undefined && {
          lookedAtMax: ROWS_LOOKED_AT_MAX,
          isFound: (row) => isTo(row.to.to) && (hasText(row.text) || hasText(row.error)),
        },
      )
      return { replies: page.map(shownOutboxRow), next }
    },
  }),
  defineRoute({
    method: 'GET',
    path: '/api/deliveries/outbox/:number',
    summary: 'One reply that is sent, with its turn',
    auth: 'operator',
    answers: { 200: { description: 'The reply', schema: outboxEntrySchema } },
    async handle({ params }) {
      const row = await outbox.get(numberOf(params, unknownReply))
      if (!row) throw unknownReply(params.number ?? '')
      return shownOutboxEntry(row, row.turnId === null ? undefined : await turns.get(row.turnId))
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/api/deliveries/outbox/:number/replay',
    summary: 'Send a dead or ambiguous reply again; an ambiguous one may arrive twice',
    auth: 'operator',
    answers: { 200: { description: 'It is due now', schema: replayedSchema } },
    async handle({ by, params }) {
      const number = numberOf(params, unknownReply)
      await replayReply(outbox, number)
      await recordReplay(runtime, by, 'outbox', [number])
      runtime.delivery.wake()
      return { replayed: true, number }
    },
  }),
]

const replayRepliesRoute = (runtime: Runtime, { outbox } = runtime.store): Route =>
  defineRoute({
    method: 'POST',
    path: '/api/deliveries/outbox/replay',
    summary: `Send the oldest replies that a filter selects again, at most ${REPLAY_MAX}; an ambiguous one may arrive twice`,
    auth: 'operator',
    body: selectionSchema(REPLAYABLE_REPLIES),
    answers: replayedAnswer,
    async handle({ by, body: { state: states, since, ...filter } }) {
      const sinceMs = sinceTime(since)
      const result = await replaySelected(outbox, { ...filter, states, isSelected: ({ createdAtMs }) => createdAtMs >= sinceMs })
      await recordReplay(runtime, by, 'outbox', result.replayed)
      runtime.delivery.wake()
      return shownReplay(result)
    },
  })

const discardRoutes = ({ clock, store: { inbox, outbox } }: Runtime): Route[] => [
  defineRoute({
    method: 'POST',
    path: '/api/deliveries/inbox/:number/discard',
    summary: 'Discard a dead or limited message: it no longer counts as a dead letter. The audit log records who did it',
    auth: 'operator',
    answers: { 200: { description: 'It is discarded; it can still be replayed while its content is kept', schema: discardedSchema } },
    async handle({ by, params }) {
      const number = numberOf(params, unknownMessage)
      await discardMessage(inbox, number, { atMs: clock.nowMs(), by })
      return { discarded: true, number }
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/api/deliveries/outbox/:number/discard',
    summary: 'Discard a dead or ambiguous reply, with the later parts that died with it. The audit log records who did it',
    auth: 'operator',
    answers: { 200: { description: 'It is discarded; it can still be sent again while its text is kept', schema: discardedSchema } },
    async handle({ by, params }) {
      const number = numberOf(params, unknownReply)
      await discardReply(outbox, number, { atMs: clock.nowMs(), by })
      return { discarded: true, number }
    },
  }),
]

/** The most numbers that one record of a replay names; a replay of many has thousands. */
const NUMBERS_RECORDED_MAX = 100

/** Records who had these entries carried out again. */
async function recordReplay(runtime: Runtime, by: string, box: 'inbox' | 'outbox', numbers: readonly number[]): Promise<void> {
  if (numbers.length > 0)
    await recordAction(runtime, 'delivery_replayed', by, { box, count: numbers.length, numbers: numbers.slice(0, NUMBERS_RECORDED_MAX) })
}

const sinceTime = (since: string | undefined): number => (since === undefined ? Number.NEGATIVE_INFINITY : Date.parse(since))

/** The text of a message; undefined if the store has deleted it. */
async function textOf(runtime: Runtime, number: number): Promise<string | undefined> {
  const stored = await runtime.store.inbox.get(number)
  const message = stored && (await withMessage(runtime.snapshot().channels, stored)).message
  return message ? wordsOf(message) : undefined
}

/** A page of the rows that a filter selects, or of those among them that a search finds. */
async function listPage<Row extends { readonly number: number }>(
  { state: states, limit, before, ...filter }: Filter,
  list: (filter: DeliveryFilter) => Promise<Row[]>,
  search: Pick<Search<Row, number>, 'lookedAtMax' | 'isFound'> | false,
): Promise<{ readonly page: Row[]; readonly next: number | null }> {
  const read = async (page: { readonly limit: number; readonly before?: number }): Promise<Row[]> => {
    const one = { ...filter, ...page }
    if (!states) return list(one)
    const found = await Promise.all([...new Set(states)].map((state) => list({ ...one, state })))
    return found
      .flat()
      .toSorted((a, b) => b.number - a.number)
      .slice(0, page.limit)
  }
  if (search) {
    const { page, next } = await searchPage({ ...search, limit, before, list: read, placeOf: ({ number }) => number })
    return { page, next: next !== null && next > 1 ? next : null }
  }
  // One row more tells whether there is a next page.
  const rows = await read({ limit: limit + 1, ...(before !== undefined && { before }) })
  return pageOf(rows, limit, ({ number }) => number)
}

/** Throws `not_found` if the path has no valid number. */
function numberOf({ number = '' }: Readonly<Record<string, string>>, unknown: (number: string) => AppError): number {
  if (!/^\d{1,15}$/.test(number)) throw unknown(number)
  return Number(number)
}
