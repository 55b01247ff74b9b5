/** Reads missed messages from servers that keep them. See https://ircv3.net/specs/extensions/chathistory. */
import { signalScope, untilAborted } from '@sluice/kit'
import { AppError, type Clock } from '@sluice/sdk'
import { timeOf } from './parse.ts'
import type { Session } from './session.ts'
import { folded, type Line } from './wire.ts'

const ANSWER_MS = 30_000
const PAGES_MAX = 50

export interface Missed {
  /** The messages in the order of each conversation. */
  readonly lines: readonly Line[]
  /** The conversations that the server did not show in full, with the reason. */
  readonly refused: readonly string[]
}

/** Reads the messages after `sinceMs` in the channels and in the direct conversations. Throws `unavailable` when the connection breaks. */
export async function readMissed(session: Session, channels: readonly string[], sinceMs: number, clock: Clock): Promise<Missed> {
  const lines: Line[] = []
  const refused: string[] = []
  const entered = channels.filter((channel) => session.isIn(channel))
  const people = await ask(
    session,
    `TARGETS timestamp=${iso(sinceMs)} timestamp=${iso(clock.nowMs() + 86_400_000)} ${session.historyMax}`,
    clock,
  )
  if (typeof people === 'string') refused.push(people)
  const direct = typeof people === 'string' ? [] : people.map(({ params }) => params[1] ?? '').filter((name) => !session.isChannel(name))
  for (const target of [...entered, ...direct]) {
    const why = await readPages(session, target, sinceMs, clock, lines)
    if (why !== undefined) refused.push(`${target}: ${why}`)
  }
  return { lines, refused }
}

/** Appends the messages of one conversation to `lines`. Returns why some are missing. */
async function readPages(session: Session, target: string, sinceMs: number, clock: Clock, lines: Line[]): Promise<string | undefined> {
  const known = new Set<string>()
  let afterMs = sinceMs
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const answer = await ask(session, `AFTER ${target} timestamp=${iso(afterMs)} ${session.historyMax}`, clock)
    if (typeof answer === 'string') return answer
    // A message without an id could not be distinguished from an earlier one.
    const news = answer.filter(({ tags }) => tags.has('msgid') && !known.has(tags.get('msgid') ?? ''))
    for (const line of news) known.add(line.tags.get('msgid') ?? '')
    lines.push(...news)
    if (news.length === 0 || answer.length < session.historyMax) return undefined
    // Messages of the same millisecond may be on the next page.
    afterMs = Math.max(afterMs, ...news.map((line) => timeOf(line) ?? 0)) - 1
  }
  return 'too many messages'
}

/** Returns the lines of the answer, or the reason of a refusal. */
async function ask(session: Session, request: string, clock: Clock): Promise<readonly Line[] | string> {
  const { link } = session
  const answered = Promise.withResolvers<readonly Line[] | string>()
  const stop = link.onLine(({ command, params }) => {
    if (command === 'FAIL' && folded(params[0] ?? '') === 'chathistory') answered.resolve((params.at(-1) ?? '').slice(0, 200))
  })
  using limit = signalScope([link.signal], ANSWER_MS, clock)
  try {
    session.awaitHistory(answered.resolve)
    link.send(`CHATHISTORY ${request}`)
    return await untilAborted(answered.promise, limit.signal, 'The irc server did not answer')
  } catch (error) {
    throw new AppError('unavailable', 'The irc server did not answer a request for missed messages', { cause: error })
  } finally {
    stop()
  }
}

const iso = (ms: number): string => new Date(ms).toISOString()
