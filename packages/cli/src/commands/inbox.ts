/** `sluice inbox`: messages received over channels, their turns and their replies. */
import type { ShownInboxEntry, ShownInboxRow } from '@sluice/delivery/inspector'
import { INBOX_STATES, REPLAYABLE_MESSAGES } from '@sluice/delivery/states'
import { AppError, oneLine } from '@sluice/sdk'
import { apiPath } from '../api/api.ts'
import { withApi } from '../api/open-api.ts'
import type { CliContext, Output } from '../context.ts'
import { type DeliveryBox, discardDeliveries, listDeliveries, replayDeliveries } from '../deliveries/delivery-commands.ts'
import { wholeNumber } from '../option-values.ts'
import { ERROR_CHARS_MAX, formatTurn, NAME_CHARS_MAX, printBlock, printFields, TEXT_CHARS_MAX } from '../print-details.ts'

const BOX: DeliveryBox<ShownInboxRow> = {
  name: 'inbox',
  member: 'messages',
  states: INBOX_STATES,
  replayableStates: REPLAYABLE_MESSAGES,
  replayed: { one: 'message runs again', many: 'messages run again' },
  headings: ['number', 'received', 'channel', 'sender', 'state', 'attempts', 'error'],
  cells: ({ number, received_at, channel, sender, state, attempts, error }) => [
    String(number),
    received_at,
    channel,
    oneLine(sender, NAME_CHARS_MAX),
    state,
    String(attempts),
    oneLine(error ?? '', ERROR_CHARS_MAX),
  ],
}

export const list = async (context: CliContext): Promise<number> => listDeliveries(BOX, context)
export const dead = async (context: CliContext): Promise<number> => listDeliveries(BOX, context, ['dead'])
export const replay = async (context: CliContext): Promise<number> => replayDeliveries(BOX, context)
export const discard = async (context: CliContext): Promise<number> => discardDeliveries(BOX, context)

export async function show(context: CliContext): Promise<number> {
  const number = wholeNumber('sluice inbox show', context.args[0] ?? '', 1)
  return withApi(context, async (api) => {
    const { out, json, options } = context
    const entry = await api.get<ShownInboxEntry>(apiPath('/api/deliveries/inbox', number))
    if (options.raw === true) {
      const raw = rawBytes(entry)
      if (!raw) throw new AppError('not_found', `The request of message ${number} is no longer kept`)
      out.write(raw)
    } else if (json) out.json(entry)
    else printMessage(out, entry)
    return 0
  })
}

/** Returns the request as it arrived; undefined if the store has deleted it. */
function rawBytes({ raw, raw_base64 }: ShownInboxEntry): Uint8Array | undefined {
  if (raw_base64 !== undefined) return Buffer.from(raw_base64, 'base64')
  return typeof raw === 'string' ? Buffer.from(raw) : undefined
}

function printMessage(out: Output, entry: ShownInboxEntry): void {
  const { number, message, turn, replies } = entry
  printFields(out, {
    message: String(number),
    state: entry.state,
    channel: `${entry.channel}, account ${entry.account}`,
    sender: entry.sender,
    id: entry.message_id,
    session: entry.session,
    received: entry.received_at,
    'verified by': entry.verdict,
    attempts: String(entry.attempts),
    'next attempt': entry.next_at,
    ended: entry.ended_at,
    error: entry.error,
    turn: formatTurn(entry.turn_id, turn),
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
  printBlock(out, 'request', requestText(entry))
}

/** Returns JSON with line breaks, other text unchanged, and a hint in place of bytes that are not UTF-8 or no longer kept. */
function requestText(entry: ShownInboxEntry): string {
  if (typeof entry.raw !== 'string') {
    const bytes = rawBytes(entry)
    return bytes ? `${bytes.length} bytes that are not text; 'sluice inbox show ${entry.number} --raw' writes them` : 'no longer kept'
  }
  try {
    return JSON.stringify(JSON.parse(entry.raw), null, 2)
  } catch {
    return entry.raw
  }
}
