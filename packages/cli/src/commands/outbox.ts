/** `sluice outbox`: what goes out over channels, and whether it arrived. */
import { shownOutboxEntry, unknownReply } from '@sluice/delivery'
import type { OutboxRow, TurnRow } from '@sluice/sdk'
import type { CliContext, Output } from '../context.ts'
import { list as listRows } from '../deliveries/list.ts'
import { outboxBox } from '../deliveries/outbox.ts'
import { replay as replayRows } from '../deliveries/replay.ts'
import { printBlock, printFields, time, turnLine } from '../deliveries/show.ts'
import { wholeNumber } from '../whole-number.ts'
import { withStore } from '../with-store.ts'

export const list = (context: CliContext): Promise<number> => listRows(outboxBox, context)
export const dead = (context: CliContext): Promise<number> => listRows(outboxBox, context, outboxBox.left)
export const replay = (context: CliContext): Promise<number> => replayRows(outboxBox, context)

export const show = (context: CliContext): Promise<number> =>
  withStore(context, async ({ store }) => {
    const { out, json } = context
    const number = wholeNumber('sluice outbox show', context.args[0] ?? '', 1)
    const row = await store.outbox.get(number)
    if (!row) throw unknownReply(number)
    const turn = row.turnId === null ? undefined : await store.turns.get(row.turnId)
    if (json) out.json(shownOutboxEntry(row, turn))
    else print(out, row, turn)
    return 0
  })

function print(out: Output, row: OutboxRow, turn: TurnRow | undefined): void {
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
    created: time(row.createdAtMs),
    'next attempt': time(row.nextAtMs),
    ended: time(row.endedAtMs),
    'client id': row.clientId,
    'provider id': row.providerId,
    error: row.error,
    answers: row.inbox === null ? null : `message ${row.inbox} ('sluice inbox show ${row.inbox}')`,
    turn: turnLine(row.turnId, turn),
  })
  printBlock(out, 'text', row.text ?? 'no longer kept')
}
