/** `sluice inbox`: what came in over channels, and what became of it. */
import { shownInboxEntry, unknownMessage, utf8Text } from '@sluice/delivery'
import { AppError, type InboxEntry, oneLine, type TurnRow } from '@sluice/sdk'
import type { CliContext, Output } from '../context.ts'
import { inboxBox } from '../deliveries/inbox.ts'
import { list as listRows } from '../deliveries/list.ts'
import { replay as replayRows } from '../deliveries/replay.ts'
import { printBlock, printFields, time, turnLine } from '../deliveries/show.ts'
import { TEXT_CHARS_MAX } from '../deliveries/widths.ts'
import { wholeNumber } from '../whole-number.ts'
import { withStore } from '../with-store.ts'

export const list = (context: CliContext): Promise<number> => listRows(inboxBox, context)
export const dead = (context: CliContext): Promise<number> => listRows(inboxBox, context, inboxBox.left)
export const replay = (context: CliContext): Promise<number> => replayRows(inboxBox, context)

export const show = (context: CliContext): Promise<number> =>
  withStore(context, async ({ store }) => {
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
    else print(out, entry, turn)
    return 0
  })

function print(out: Output, entry: InboxEntry, turn: TurnRow | undefined): void {
  const { number, message, raw, replies } = entry
  printFields(out, {
    message: String(number),
    state: entry.state,
    channel: `${entry.channel}, account ${entry.account}`,
    sender: entry.sender,
    id: entry.messageId,
    session: entry.session,
    received: time(entry.receivedAtMs),
    'proved by': entry.verdict,
    attempts: String(entry.attempts),
    'next attempt': time(entry.nextAtMs),
    ended: time(entry.endedAtMs),
    error: entry.error,
    turn: turnLine(entry.turnId, turn),
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
  printBlock(out, 'request', raw ? readable(raw, number) : 'no longer kept')
}

/** JSON with line breaks, other text as it is. */
function readable(raw: Uint8Array, number: number): string {
  const text = utf8Text(raw)
  if (text === undefined) return `${raw.length} bytes that are no text; 'sluice inbox show ${number} --raw' writes them`
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
