/** `sluice rooms`: lists rooms, shows and sets their rules, erases them, and plays a transcript against a rule. */
import { readFile } from 'node:fs/promises'
import type { ShownRoom, TriedLine } from '@sluice/http/answers'
import { AppError, errorText, oneLine, type RoomRule } from '@sluice/sdk'
import { type Api, apiPath } from '../api/api.ts'
import { withApi } from '../api/open-api.ts'
import type { CliContext } from '../context.ts'
import { NAME_CHARS_MAX, printFields } from '../print-details.ts'
import { readInput } from '../read-input.ts'

const TRANSCRIPT_BYTES_MAX = 4 * 1024 * 1024
const LISTS: readonly string[] = ['people', 'tools']
const NUMBERS: readonly string[] = ['turns_per_hour', 'usd_per_day']

export const list = (context: CliContext): Promise<number> =>
  withApi(context, async (api) => {
    const { out, json } = context
    const { rooms } = await api.get<{ rooms: readonly ShownRoom[] }>('/api/rooms')
    if (json) out.json(rooms)
    else if (rooms.length === 0) out.print('no rooms')
    else
      out.table(
        ['room', 'session', 'responds', 'agent', 'last active'],
        rooms.map(({ room, session, respond, agent, last_activity }) => [
          oneLine(room, NAME_CHARS_MAX * 2),
          session,
          respond,
          agent,
          last_activity ?? '',
        ]),
      )
    return 0
  })

export const show = (context: CliContext): Promise<number> =>
  withApi(context, async (api) => {
    print(context, await get(api, context))
    return 0
  })

export const set = (context: CliContext): Promise<number> =>
  withApi(context, async (api) => {
    const [id = '', ...changes] = context.args
    const { rule, unreadable } = await get(api, context)
    const givenUp = unreadable.filter((name) => changes.includes(`${name}=`))
    const kept = changes.filter((change) => !givenUp.includes(change.slice(0, -1)))
    const query = givenUp.length === 0 ? '' : `?give_up=${givenUp.map(encodeURIComponent).join(',')}`
    print(context, await api.put<ShownRoom>(`${apiPath('/api/rooms', id)}${query}`, changed(rule, kept)))
    return 0
  })

export const erase = (context: CliContext): Promise<number> =>
  withApi(context, async (api) => {
    const [id = ''] = context.args
    const answer = await api.delete<object>(apiPath('/api/rooms', id))
    if (context.json) context.out.json(answer)
    else context.out.print(`erased ${id}`)
    return 0
  })

export async function play(context: CliContext): Promise<number> {
  const { out, json, args, options } = context
  const [id = '', ...changes] = args
  if (typeof options.transcript !== 'string')
    throw new AppError('invalid_request', 'sluice rooms try wants --transcript <file>; - is standard input')
  const messages = linesOf(await readTranscript(context, options.transcript))
  return withApi(context, async (api) => {
    const rule = changes.length === 0 ? undefined : changed((await get(api, context)).rule, changes)
    const answer = await api.post<{ messages: readonly TriedLine[] }>(`${apiPath('/api/rooms', id)}/try`, {
      messages,
      ...(rule && { rule }),
    })
    if (json) {
      out.json(answer.messages)
      return 0
    }
    out.table(
      ['outcome', 'overheard', 'sender', 'standing', 'text'],
      answer.messages.map(({ outcome, overheard, sender, standing, text }) => [
        outcome,
        String(overheard),
        oneLine(sender, NAME_CHARS_MAX),
        standing,
        oneLine(text, 60),
      ]),
    )
    const turns = answer.messages.filter(({ outcome }) => outcome === 'turn' || outcome === 'judge').length
    out.print(`${answer.messages.length} messages, ${turns} turns`)
    return 0
  })
}

const get = (api: Api, { args: [id = ''] }: CliContext): Promise<ShownRoom> => api.get<ShownRoom>(apiPath('/api/rooms', id))

function print({ out, json }: CliContext, room: ShownRoom): void {
  if (json) out.json(room)
  else {
    const { rule, unreadable, overhears, last_activity, ...fields } = room
    const rules = Object.entries(rule).map(([name, value]) => [`rule ${name}`, Array.isArray(value) ? value.join(', ') : String(value)])
    printFields(out, {
      ...fields,
      overhears: overhears ? 'yes' : 'no',
      'last active': last_activity ?? 'never',
      ...Object.fromEntries(rules),
      ...(unreadable.length > 0 && { 'not readable': `${unreadable.join(', ')}; nobody is answered` }),
    })
  }
}

/** Applies changes such as `respond=judge`. An empty value removes the part of the rule. The daemon checks the result. */
function changed(rule: RoomRule, changes: readonly string[]): RoomRule {
  const next: Record<string, unknown> = { ...rule }
  for (const change of changes) {
    const [, name = '', value = ''] = /^([a-z_]+)=(.*)$/s.exec(change) ?? []
    if (name === '') throw new AppError('invalid_request', `"${change}" is no rule. Write <name>=<value>, such as respond=judge.`)
    if (value === '') delete next[name]
    else if (LISTS.includes(name)) next[name] = value.split(',').map((entry) => entry.trim())
    else next[name] = NUMBERS.includes(name) ? Number(value) : value
  }
  return next
}

async function readTranscript({ stdin }: CliContext, file: string): Promise<string> {
  if (file === '-') return readInput(stdin, TRANSCRIPT_BYTES_MAX)
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    throw new AppError('invalid_request', `${file} cannot be read: ${errorText(error)}`)
  }
}

/** Reads one JSON object per line. */
const linesOf = (text: string): unknown[] =>
  text
    .split('\n')
    // Also removes the byte order mark that some editors put at the start.
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .map((line, index) => {
      try {
        return JSON.parse(line)
      } catch (error) {
        throw new AppError('invalid_request', `message ${index + 1} of the transcript is not JSON: ${errorText(error)}`)
      }
    })
