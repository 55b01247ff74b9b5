/** `sluice outbox`: messages to send over channels, and the outcome of each. */
import type { ShownOutboxEntry, ShownOutboxRow } from '@sluice/delivery/inspector'
import { OUTBOX_STATES, REPLAYABLE_REPLIES } from '@sluice/delivery/states'
import { oneLine } from '@sluice/sdk'
import { apiPath } from '../api/api.ts'
import { withApi } from '../api/open-api.ts'
import type { CliContext, Output } from '../context.ts'
import { type DeliveryBox, discardDeliveries, listDeliveries, replayDeliveries } from '../deliveries/delivery-commands.ts'
import { wholeNumber } from '../option-values.ts'
import { ERROR_CHARS_MAX, formatTurn, NAME_CHARS_MAX, printBlock, printFields } from '../print-details.ts'

const BOX: DeliveryBox<ShownOutboxRow> = {
  name: 'outbox',
  member: 'replies',
  states: OUTBOX_STATES,
  replayableStates: REPLAYABLE_REPLIES,
  replayed: { one: 'reply is sent again', many: 'replies are sent again' },
  headings: ['number', 'created', 'channel', 'to', 'part', 'state', 'attempts', 'error'],
  cells: ({ number, created_at, channel, to, part, parts, state, repeated, attempts, error }) => [
    String(number),
    created_at,
    channel,
    oneLine(to.to, NAME_CHARS_MAX),
    `${part}/${parts}`,
    repeated ? `${state}, repeated` : state,
    String(attempts),
    oneLine(error ?? '', ERROR_CHARS_MAX),
  ],
}

export const list = async (context: CliContext): Promise<number> => listDeliveries(BOX, context)
export const dead = async (context: CliContext): Promise<number> => listDeliveries(BOX, context, BOX.replayableStates)
export const replay = async (context: CliContext): Promise<number> => replayDeliveries(BOX, context)
export const discard = async (context: CliContext): Promise<number> => discardDeliveries(BOX, context)

export async function show(context: CliContext): Promise<number> {
  const number = wholeNumber('sluice outbox show', context.args[0] ?? '', 1)
  return withApi(context, async (api) => {
    const entry = await api.get<ShownOutboxEntry>(apiPath('/api/deliveries/outbox', number))
    if (context.json) context.out.json(entry)
    else printReply(context.out, entry)
    return 0
  })
}

function printReply(out: Output, entry: ShownOutboxEntry): void {
  const { to, thread, reply_to, more } = entry.to
  printFields(out, {
    reply: String(entry.number),
    state: entry.repeated ? `${entry.state}, repeated after an answer 503` : entry.state,
    channel: `${entry.channel}, account ${entry.account}`,
    to,
    thread,
    'reply to': reply_to,
    ...Object.fromEntries(Object.entries(more ?? {}).map(([name, value]) => [`to ${name}`, value])),
    part: `${entry.part} of ${entry.parts}`,
    attempts: String(entry.attempts),
    created: entry.created_at,
    'next attempt': entry.next_at,
    ended: entry.ended_at,
    'client id': entry.client_id,
    'provider id': entry.provider_id,
    error: entry.error,
    answers: entry.inbox === null ? null : `message ${entry.inbox} ('sluice inbox show ${entry.inbox}')`,
    turn: formatTurn(entry.turn_id, entry.turn),
  })
  printBlock(out, 'text', entry.text ?? 'no longer kept')
}
