/** `sluice outbox`: messages to send over channels, and the outcome of each. */
import { OUTBOX_STATES, shownOutboxEntry, shownOutboxRow } from '@sluice/delivery/inspector'
import { replayReply, unknownReply } from '@sluice/delivery/replay'
import { type OutboxRow, oneLine, type TurnRow } from '@sluice/sdk'
import type { CliContext, Output } from '../context.ts'
import { type DeliveryBox, listDeliveries } from '../deliveries/list-deliveries.ts'
import { replayDeliveries } from '../deliveries/replay-deliveries.ts'
import { wholeNumber } from '../option-values.ts'
import { ERROR_CHARS_MAX, formatTime, formatTurn, NAME_CHARS_MAX, printBlock, printFields } from '../print-details.ts'
import { withStore } from '../with-store.ts'

const BOX: DeliveryBox<OutboxRow> = {
  name: 'outbox',
  states: OUTBOX_STATES,
  replayableStates: ['dead', 'ambiguous'],
  replayed: { one: 'reply is sent again', many: 'replies are sent again' },
  headings: ['number', 'created', 'channel', 'to', 'part', 'state', 'attempts', 'error'],
  atMs: ({ createdAtMs }) => createdAtMs,
  cells: ({ number, createdAtMs, channel, to, part, parts, state, attempts, error }) => [
    String(number),
    new Date(createdAtMs).toISOString(),
    channel,
    oneLine(to.to, NAME_CHARS_MAX),
    `${part}/${parts}`,
    state,
    String(attempts),
    oneLine(error ?? '', ERROR_CHARS_MAX),
  ],
  shown: shownOutboxRow,
  of: ({ outbox }) => outbox,
  replay: ({ outbox }, number) => replayReply(outbox, number),
}

export const list = (context: CliContext): Promise<number> => listDeliveries(BOX, context)
export const dead = (context: CliContext): Promise<number> => listDeliveries(BOX, context, BOX.replayableStates)
export const replay = (context: CliContext): Promise<number> => replayDeliveries(BOX, context)

export const show = (context: CliContext): Promise<number> =>
  withStore(context, async (store) => {
    const { out, json } = context
    const number = wholeNumber('sluice outbox show', context.args[0] ?? '', 1)
    const row = await store.outbox.get(number)
    if (!row) throw unknownReply(number)
    const turn = row.turnId === null ? undefined : await store.turns.get(row.turnId)
    if (json) out.json(shownOutboxEntry(row, turn))
    else printReply(out, row, turn)
    return 0
  })

function printReply(out: Output, row: OutboxRow, turn: TurnRow | undefined): void {
  const { to, thread, replyTo, more = {} } = row.to
  printFields(out, {
    reply: String(row.number),
    state: row.state,
    channel: `${row.channel}, account ${row.account}`,
    to,
    thread,
    'reply to': replyTo,
    ...Object.fromEntries(Object.entries(more).map(([name, value]) => [`to ${name}`, value])),
    part: `${row.part} of ${row.parts}`,
    attempts: String(row.attempts),
    created: formatTime(row.createdAtMs),
    'next attempt': formatTime(row.nextAtMs),
    ended: formatTime(row.endedAtMs),
    'client id': row.clientId,
    'provider id': row.providerId,
    error: row.error,
    answers: row.inbox === null ? null : `message ${row.inbox} ('sluice inbox show ${row.inbox}')`,
    turn: formatTurn(row.turnId, turn),
  })
  printBlock(out, 'text', row.text ?? 'no longer kept')
}
