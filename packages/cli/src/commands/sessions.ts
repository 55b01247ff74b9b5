/** `sluice sessions`: lists, shows, exports and erases conversations. */
import type { Erasure, Session, SessionLine, SessionsPage, SessionWithSummary } from '@sluice/http/answers'
import { AppError, oneLine } from '@sluice/sdk'
import { type Api, apiPath } from '../api/api.ts'
import { deviceNames } from '../api/device-names.ts'
import { withApi } from '../api/open-api.ts'
import { readPages } from '../api/pages.ts'
import type { CliContext } from '../context.ts'
import { limitOption, textOption } from '../option-values.ts'
import { NAME_CHARS_MAX, printFields } from '../print-details.ts'

/** The largest page of `GET /api/sessions`. */
const PAGE = 200

export const list = (context: CliContext): Promise<number> =>
  withApi(context, async (api) => {
    const { out, json } = context
    const scope = scopeOptions(context)
    const first = textOption(context, 'cursor')
    const { items, next } = await readPages<Session, string>(limitOption(context), PAGE, async (limit, cursor = first) => {
      const page = await api.get<SessionsPage>('/api/sessions', { ...scope, limit, cursor })
      return { items: page.sessions, next: page.next }
    })
    if (json) out.json({ sessions: items, next })
    else if (items.length === 0) out.print('no conversations')
    else {
      const named = await deviceNames(api, items.map(deviceOf))
      const senderOf = (row: Session) => row.sender ?? withoutId(named(deviceOf(row)))
      out.table(
        ['last active', 'messages', 'channel', 'sender', 'id'],
        items.map((row) => [
          row.last_activity,
          String(row.message_count),
          oneLine(row.channel ?? '', NAME_CHARS_MAX),
          oneLine(senderOf(row), NAME_CHARS_MAX),
          row.session_id,
        ]),
      )
    }
    if (!json && next !== null) out.warn(`older ones: add --cursor ${next}`)
    return 0
  })

/** Returns the query for all conversations, or for the ones of `--channel` and `--sender`. */
export function scopeOptions(context: CliContext) {
  const { channel, sender } = personOptions(context)
  if (sender !== undefined && channel === undefined) throw new AppError('invalid_request', '--sender goes with --channel')
  return channel === undefined ? { all: true } : { channel, sender }
}

/** The device that a conversation belongs to; the id of one with an agent has the agent before it. */
const deviceOf = ({ channel, session_id }: Session): string => (channel === null ? `device:${session_id.split('/').at(-2) ?? ''}` : '')

/** Returns nothing for a device without a name. */
const withoutId = (named: string): string => (/^device:/.test(named) ? '' : named)

export const show = (context: CliContext): Promise<number> =>
  withApi(context, async (api) => {
    const { out, json } = context
    const session = await findSession(api, context)
    const limit = limitOption(context)
    const lines: SessionLine[] = []
    for await (const line of linesOf(api, session)) {
      if (line.role === 'summary') break
      lines.push(line)
      if (lines.length > limit) lines.shift()
    }
    if (json) {
      out.json({ ...session, messages: lines })
      return 0
    }
    const { message_count, summary, ...fields } = session
    printFields(out, { ...fields, messages: String(message_count) })
    if (summary) {
      const about = `${summary.at} summary of the first ${summary.messages} messages`
      out.print(`${out.style('dim', about)}  ${summary.text}`)
    }
    for (const { at, role, content, tool_calls = [] } of lines) {
      const calls = tool_calls.map(({ name }) => `[${name}]`)
      out.print(`${out.style('dim', `${at} ${role}`)}  ${[content, ...calls].filter((text) => text !== '').join(' ')}`)
    }
    return 0
  })

/** `sluice sessions export`: prints every message of one conversation, and its summary. */
export const exportConversation = (context: CliContext): Promise<number> =>
  withApi(context, async (api) => {
    const { out, json } = context
    const session = await findSession(api, context)
    const lines = linesOf(api, session)
    if (json) {
      const messages: SessionLine[] = []
      for await (const line of lines) if (line.role !== 'summary') messages.push(line)
      out.json({ ...session, messages })
    } else for await (const line of lines) out.print(JSON.stringify(line))
    return 0
  })

export const erase = (context: CliContext): Promise<number> =>
  withApi(context, async (api) => {
    const erased = await eraseSelected(context, api)
    if (context.json) context.out.json(erased)
    else printErased(context, erased)
    return 0
  })

/** Erases the conversation with the id, or everything of the person whom `--channel` and `--sender` name. */
async function eraseSelected(context: CliContext, api: Api): Promise<Erasure & { readonly linked?: readonly string[] }> {
  const [id] = context.args
  const { channel, sender } = personOptions(context)
  if (id !== undefined && channel === undefined && sender === undefined) {
    const { erased } = await named(id, api.delete<{ readonly erased: Erasure }>(apiPath('/api/sessions', id)))
    return erased
  }
  if (id === undefined && channel !== undefined && sender !== undefined) {
    const { erased, linked = [] } = await api.delete<{ readonly erased: Erasure; readonly linked?: readonly string[] }>('/api/sessions', {
      channel,
      sender,
    })
    return linked.length > 0 ? { ...erased, linked } : erased
  }
  throw new AppError(
    'invalid_request',
    "name one conversation by its id, or a person with --channel and --sender; 'sluice sessions list' shows both",
  )
}

function printErased({ out }: CliContext, erased: Erasure & { readonly linked?: readonly string[] }): void {
  const { linked = [], said, messages, replies, turns, approvals, memories, files, held, purged, copies } = erased
  const counts = { 'turns said': said, turns, messages, replies, approvals, memories, files }
  const shown = Object.entries(counts).map(([name, count]) => `${count} ${name}`)
  out.print(`erased: ${shown.join(', ')}`)
  if (linked.length > 0) out.print(`erased with the accounts that were linked: ${linked.join(', ')}`)
  if (held > 0) out.warn(`${held} requests are kept until other people's messages in them are done: run this again then`)
  if (!purged) out.warn('another process reads the database: its log is emptied when the daemon stops')
  for (const copy of copies) out.warn(`still in the copy from before an upgrade; delete it when you do not need it: ${copy}`)
}

const findSession = (api: Api, { args: [id = ''] }: CliContext): Promise<SessionWithSummary> =>
  named(id, api.get<SessionWithSummary>(apiPath('/api/sessions', id)))

/** The lines of the export: the messages, and then the summary if there is one. */
const linesOf = (api: Api, { session_id }: Session) => api.lines<SessionLine>(apiPath('/api/sessions', session_id, 'export'))

/** Names the conversation in the error if no conversation has the id. */
const named = <Answer>(id: string, answer: Promise<Answer>): Promise<Answer> =>
  answer.catch((error: unknown) => {
    if (!(error instanceof AppError) || error.code !== 'not_found') throw error
    throw new AppError('not_found', `There is no conversation '${id}'; 'sluice sessions list' shows the ids`)
  })

const personOptions = (context: CliContext) => ({ channel: textOption(context, 'channel'), sender: textOption(context, 'sender') })
