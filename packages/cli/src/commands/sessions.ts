/** `sluice sessions`: lists, shows, exports and erases conversations. */
import { operator } from '@sluice/http/operator'
import { cursorAfter, erasePerson, exported, readCursor, sessionsEnds, shownConversation, shownErased } from '@sluice/runtime/conversations'
import { AppError, type Erased, oneLine, type SessionRow, type SessionStore, type Store } from '@sluice/sdk'
import type { CliContext } from '../context.ts'
import { limitOption } from '../option-values.ts'
import { NAME_CHARS_MAX, printFields } from '../print-details.ts'
import { withStore } from '../with-store.ts'

export const list = (context: CliContext): Promise<number> =>
  withStore(context, async ({ sessions }) => {
    const { out, json, options } = context
    const { channel, sender } = personOptions(context)
    if (sender !== undefined && channel === undefined) throw new AppError('invalid_request', '--sender goes with --channel')
    const limit = limitOption(context)
    const rows = await sessions.list({
      limit: limit + 1,
      ...(channel !== undefined && sessionsEnds(channel, sender)),
      ...(typeof options.cursor === 'string' && { before: readCursor(options.cursor) }),
    })
    const page = rows.slice(0, limit).map(shownConversation)
    const next = cursorAfter(rows, limit)
    if (json) out.json({ sessions: page, next })
    else if (page.length === 0) out.print('no conversations')
    else
      out.table(
        ['last active', 'messages', 'channel', 'sender', 'id'],
        page.map((row) => [
          row.last_activity,
          String(row.message_count),
          oneLine(row.channel ?? '', NAME_CHARS_MAX),
          oneLine(row.sender ?? '', NAME_CHARS_MAX),
          row.session_id,
        ]),
      )
    if (!json && next !== null) out.warn(`older ones: add --cursor ${next}`)
    return 0
  })

export const show = (context: CliContext): Promise<number> =>
  withStore(context, async ({ sessions }) => {
    const { out, json } = context
    const row = await findSession(sessions, context)
    const limit = limitOption(context)
    const lines = []
    for await (const line of exported(sessions, row.id)) {
      lines.push(line)
      if (lines.length > limit) lines.shift()
    }
    if (json) {
      out.json({ ...shownConversation(row), messages: lines })
      return 0
    }
    const { message_count, ...fields } = shownConversation(row)
    printFields(out, { ...fields, messages: String(message_count) })
    for (const { at, role, content, tool_calls = [] } of lines) {
      const calls = tool_calls.map(({ name }) => `[${name}]`)
      out.print(`${out.style('dim', `${at} ${role}`)}  ${[content, ...calls].filter((text) => text !== '').join(' ')}`)
    }
    return 0
  })

/** `sluice sessions export`: prints every message of one conversation. */
export const exportConversation = (context: CliContext): Promise<number> =>
  withStore(context, async ({ sessions }) => {
    const { out, json } = context
    const row = await findSession(sessions, context)
    const lines = exported(sessions, row.id)
    if (json) {
      const messages = []
      for await (const line of lines) messages.push(line)
      out.json({ ...shownConversation(row), messages })
    } else for await (const line of lines) out.print(JSON.stringify(line))
    return 0
  })

export const erase = (context: CliContext): Promise<number> =>
  withStore(context, async (store, clock) => {
    const erased = await eraseSelected(context, store, { atMs: clock.nowMs(), by: operator() })
    if (context.json) context.out.json(shownErased(erased))
    else printErased(context, erased)
    return 0
  })

/** Erases the conversation with the id, or everything of the person whom `--channel` and `--sender` name. */
async function eraseSelected(context: CliContext, store: Store, record: { readonly atMs: number; readonly by: string }): Promise<Erased> {
  const [id] = context.args
  const { channel, sender } = personOptions(context)
  if (id !== undefined && channel === undefined && sender === undefined) {
    const erased = await store.sessions.erase(id, record)
    if (!erased) throw unknownSession(id)
    return erased
  }
  if (id === undefined && channel !== undefined && sender !== undefined) {
    const erased = await erasePerson(store, { channel, sender }, record)
    if (!erased) throw new AppError('not_found', 'Nothing is kept of this sender.')
    return erased
  }
  throw new AppError(
    'invalid_request',
    "name one conversation by its id, or a person with --channel and --sender; 'sluice sessions list' shows both",
  )
}

function printErased({ out }: CliContext, erased: Erased): void {
  const { historyTurns, messages, replies, turns, approvals, memories, held, purged, copies } = erased
  const counts = { 'turns said': historyTurns, turns, messages, replies, approvals, memories }
  const shown = Object.entries(counts).map(([name, count]) => `${count} ${name}`)
  out.print(`erased: ${shown.join(', ')}`)
  if (held > 0) out.warn(`${held} requests are kept until other people's messages in them are done: run this again then`)
  if (!purged) out.warn('another process reads the database: its log is emptied when the daemon stops')
  for (const copy of copies) out.warn(`still in the copy from before an upgrade; delete it when you do not need it: ${copy}`)
}

async function findSession(sessions: SessionStore, { args: [id = ''] }: CliContext): Promise<SessionRow> {
  const row = await sessions.get(id)
  if (!row) throw unknownSession(id)
  return row
}

const unknownSession = (id: string): AppError =>
  new AppError('not_found', `There is no conversation '${id}'; 'sluice sessions list' shows the ids`)

const personOptions = ({ options: { channel, sender } }: CliContext) => ({
  channel: typeof channel === 'string' ? channel : undefined,
  sender: typeof sender === 'string' ? sender : undefined,
})
