/** `sluice inbox`: messages received over channels, their turns and their replies. */
import { INBOX_STATES, shownInboxEntry, shownInboxRow, utf8Text } from '@sluice/delivery/inspector'
import { replayMessage, unknownMessage } from '@sluice/delivery/replay'
import { AppError, type InboxEntry, type InboxRow, oneLine, type TurnRow } from '@sluice/sdk'
import type { CliContext, Output } from '../context.ts'
import { type DeliveryBox, listDeliveries } from '../deliveries/list-deliveries.ts'
import { replayDeliveries } from '../deliveries/replay-deliveries.ts'
import { wholeNumber } from '../option-values.ts'
import { ERROR_CHARS_MAX, formatTime, formatTurn, NAME_CHARS_MAX, printBlock, printFields, TEXT_CHARS_MAX } from '../print-details.ts'
import { withStore } from '../with-store.ts'

const BOX: DeliveryBox<InboxRow> = {
  name: 'inbox',
  states: INBOX_STATES,
  replayableStates: ['dead'],
  replayed: { one: 'message runs again', many: 'messages run again' },
  headings: ['number', 'received', 'channel', 'sender', 'state', 'attempts', 'error'],
  atMs: ({ receivedAtMs }) => receivedAtMs,
  cells: ({ number, receivedAtMs, channel, sender, state, attempts, error }) => [
    String(number),
    new Date(receivedAtMs).toISOString(),
    channel,
    oneLine(sender, NAME_CHARS_MAX),
    state,
    String(attempts),
    oneLine(error ?? '', ERROR_CHARS_MAX),
  ],
  shown: shownInboxRow,
  of: ({ inbox }) => inbox,
  replay: ({ inbox }, number) => replayMessage(inbox, number),
}

export const list = (context: CliContext): Promise<number> => listDeliveries(BOX, context)
export const dead = (context: CliContext): Promise<number> => listDeliveries(BOX, context, BOX.replayableStates)
export const replay = (context: CliContext): Promise<number> => replayDeliveries(BOX, context)

export const show = (context: CliContext): Promise<number> =>
  withStore(context, async (store) => {
    const { out, json, options } = context
    const number = wholeNumber('sluice inbox show', context.args[0] ?? '', 1)
    const entry = await store.inbox.get(number)
    if (!entry) throw unknownMessage(number)
    if (options.raw === true) {
      if (!entry.raw) throw new AppError('not_found', `The request of message ${number} is no longer kept`)
      out.write(entry.raw)
      return 0
    }
    const turn = entry.turnId === null ? undefined : await store.turns.get(entry.turnId)
    if (json) out.json(shownInboxEntry(entry, turn))
    else printMessage(out, entry, turn)
    return 0
  })

function printMessage(out: Output, entry: InboxEntry, turn: TurnRow | undefined): void {
  const { number, message, raw, replies } = entry
  printFields(out, {
    message: String(number),
    state: entry.state,
    channel: `${entry.channel}, account ${entry.account}`,
    sender: entry.sender,
    id: entry.messageId,
    session: entry.session,
    received: formatTime(entry.receivedAtMs),
    'verified by': entry.verdict,
    attempts: String(entry.attempts),
    'next attempt': formatTime(entry.nextAtMs),
    ended: formatTime(entry.endedAtMs),
    error: entry.error,
    turn: formatTurn(entry.turnId, turn),
  })
  if (message) printBlock(out, 'text', message.text)
  for (const { kind, name, mime } of message?.attachments ?? []) out.print(`${kind} ${name}${mime ? ` (${mime})` : ''}`)
  if (turn?.response) printBlock(out, 'response', turn.response)
  if (replies.length > 0) {
    out.print('')
    out.table(
      ['reply', 'part', 'state', 'attempts', 'text', 'error'],
      replies.map((reply) => [
        String(reply.number),
        `${reply.part}/${reply.parts}`,
        reply.state,
        String(reply.attempts),
        oneLine(reply.text ?? '', TEXT_CHARS_MAX),
        oneLine(reply.error ?? '', TEXT_CHARS_MAX),
      ]),
    )
  }
  printBlock(out, 'request', raw ? requestText(raw, number) : 'no longer kept')
}

/** Returns JSON with line breaks, other text unchanged, and a hint in place of bytes that are not UTF-8. */
function requestText(raw: Uint8Array, number: number): string {
  const text = utf8Text(raw)
  if (text === undefined) return `${raw.length} bytes that are not text; 'sluice inbox show ${number} --raw' writes them`
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
