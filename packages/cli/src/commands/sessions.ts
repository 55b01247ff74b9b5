/** `sluice sessions`: what was said, with whom, exported and erased. */
import { cursorAfter, erasePerson, exported, readCursor, sessionsEnds, shownConversation } from '@sluice/runtime'
import { AppError, type Erased, oneLine, type SessionRow, type SessionStore } from '@sluice/sdk'
import type { CliContext } from '../context.ts'
import { printFields } from '../deliveries/show.ts'
import { NAME_CHARS_MAX } from '../deliveries/widths.ts'
import { operator } from '../operator.ts'

import { wholeNumber } from '../whole-number.ts'
import { withStore } from '../with-store.ts'

const LIMIT = 50
const LIMIT_MAX = 500

export const list = (context: CliContext): Promise<number> =>
  withStore(context, async ({ store }) => {
    const { out, json, options } = context
    const { channel, sender } = personOf(context)
    if (sender !== undefined && channel === undefined) throw new AppError('invalid_request', '--sender goes with --channel')
    const limit = limitOf(context)
    const rows = await store.sessions.list({
      limit: limit + 1,
      ...(channel !== undefined && sessionsEnds(channel, sender)),
      ...(typeof options.cursor === 'string' && { before: readCursor(options.cursor) }),
    })
    const [page, next] = [rows.slice(0, limit), cursorAfter(rows, limit)]
    if (json) out.json({ sessions: page.map(shownConversation), next })
    else if (page.length === 0) out.print('no conversations')
    else
      out.table(
        ['last active', 'messages', 'channel', 'sender', 'id'],
        page
          .map(shownConversation)
          .map((row) => [
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
  withStore(context, async ({ store: { sessions } }) => {
    const { out, json } = context
    const row = await found(sessions, context)
    const limit = limitOf(context)
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

export const exportOne = (context: CliContext): Promise<number> =>
  withStore(context, async ({ store: { sessions } }) => {
    const { out, json } = context
    const row = await found(sessions, context)
    const lines = exported(sessions, row.id)
    if (json) {
      const messages = []
      for await (const line of lines) messages.push(line)
      out.json({ ...shownConversation(row), messages })
    } else for await (const line of lines) out.print(JSON.stringify(line))
    return 0
  })

export const erase = (context: CliContext): Promise<number> =>
  withStore(context, async ({ store, clock }) => {
    const { out, json, args } = context
    const about = { atMs: clock.nowMs(), by: operator() }
    const erased = await eraseNamed(
      context,
      (id) => store.sessions.erase(id, about),
      (person) => erasePerson(store, person, about),
    )
    if (!erased) throw new AppError('not_found', args[0] === undefined ? 'Nothing is kept of this sender.' : unknown(args[0]))
    if (json) out.json(erased)
    else printErased(context, erased)
    return 0
  })

async function eraseNamed(
  { args: [id], ...context }: CliContext,
  one: (id: string) => Promise<Erased | undefined>,
  all: (person: { readonly channel: string; readonly sender: string }) => Promise<Erased | undefined>,
): Promise<Erased | undefined> {
  const { channel, sender } = personOf(context)
  const isPerson = channel !== undefined && sender !== undefined
  if (id !== undefined && channel === undefined && sender === undefined) return one(id)
  if (id === undefined && isPerson) return all({ channel, sender })
  throw new AppError(
    'invalid_request',
    "name one conversation by its id, or a person with --channel and --sender; 'sluice sessions list' shows both",
  )
}

function printErased({ out }: CliContext, erased: Erased): void {
  const { said, messages, replies, turns, approvals, memories, held, purged, copies } = erased
  const counts = { 'turns said': said, turns, messages, replies, approvals, memories }
  out.print(
    `erased: ${Object.entries(counts)
      .map(([name, count]) => `${count} ${name}`)
      .join(', ')}`,
  )
  if (held > 0) out.warn(`${held} requests are kept until other people's messages in them are done: run this again then`)
  if (!purged) out.warn('another process reads the database: its log is emptied when the daemon stops')
  for (const copy of copies) out.warn(`still in the copy from before an upgrade; delete it when you do not need it: ${copy}`)
}

async function found(sessions: SessionStore, { args: [id = ''] }: CliContext): Promise<SessionRow> {
  const row = await sessions.get(id)
  if (!row) throw new AppError('not_found', unknown(id))
  return row
}

const unknown = (id: string): string => `There is no conversation '${id}'; 'sluice sessions list' shows the ids`

const limitOf = ({ options: { limit } }: CliContext): number =>
  typeof limit === 'string' ? wholeNumber('--limit', limit, 1, LIMIT_MAX) : LIMIT

function personOf({ options: { channel, sender } }: Pick<CliContext, 'options'>) {
  return { channel: typeof channel === 'string' ? channel : undefined, sender: typeof sender === 'string' ? sender : undefined }
}
