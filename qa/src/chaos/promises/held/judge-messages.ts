/** Judges the notices to senders and operators, and the replies that went out without the part that the platform refused. Pure. */
import { gatewayText, type InboxEntry, type OutboxRow } from '@sluice/sdk'
import { countsOf } from '../../history.ts'
import { saidMarks, type WordsView } from '../read-words.ts'
import { missedAs, reportDisorder, Tally } from '../tally.ts'
import type { HeldRecord } from './held-record.ts'
import type { HeldMessage } from './messages.ts'

const NOTICE = gatewayText('unanswered', {})
/** How a notice to the operators ends. */
const REPLAY = /`sluice inbox replay (?<number>\d+)` runs it again/

export function judgeMessages(record: HeldRecord, words: WordsView): readonly Tally[] {
  const rows = Map.groupBy(words.inbox, ({ channel, messageId }) => `${channel} ${messageId}`)
  const rowsOf = ({ channel, id }: HeldMessage): readonly InboxEntry[] => rows.get(`${channel} ${id}`) ?? []
  return [judgeNotices(record, words, rowsOf), judgeOperators(record, words, rowsOf), judgeFallbacks(record, words, rowsOf)]
}

type RowsOf = (message: HeldMessage) => readonly InboxEntry[]

/** The sender of a message that the model refuses gets one notice. */
function judgeNotices({ messages, delivered }: HeldRecord, { outbox }: WordsView, rowsOf: RowsOf): Tally {
  const tally = new Tally('notices to senders')
  const shown = countsOf(delivered.filter(({ text }) => text === NOTICE).map(({ chat }) => chat))
  const queued = Map.groupBy(
    outbox.filter(({ text }) => text === NOTICE),
    ({ to }) => to.to,
  )
  for (const message of messages.filter(({ refusal }) => refusal !== undefined)) {
    const { mark, chat } = message
    const [row, another] = rowsOf(message)
    const replies = queued.get(chat) ?? []
    const times = shown.get(chat) ?? 0
    tally.accept()
    if (another) tally.report('doubled', `${mark} has several rows in the inbox`)
    if (!row?.error?.startsWith('refused: ') || row.state !== 'dead') {
      tally.report(missedAs(row?.state), `${mark} is ${row?.state ?? 'missing'}: ${row?.error}`)
      continue
    }
    if (replies.length > 1 || times > 1)
      tally.report('toldTwice', `the sender of ${mark} has ${times} notices, and ${replies.length} were queued`)
    judgeShown(tally, `the notice about ${mark}`, times, replies)
  }
  return tally
}

/** Operators get one notice for each agent and kind of refusal within the hour of the run. */
function judgeOperators({ messages, delivered }: HeldRecord, { outbox }: WordsView, rowsOf: RowsOf): Tally {
  const tally = new Tally('notices to operators')
  const keys = new Map<number, string>()
  for (const message of messages) {
    const { refusal, agent } = message
    const [row] = rowsOf(message)
    if (refusal !== undefined && row?.state === 'dead') keys.set(row.number, `${agent} ${refusal}`)
  }
  const keyIn = (text: string | null): string | undefined => keys.get(Number(REPLAY.exec(text ?? '')?.groups?.number))
  const shown = countsOf(delivered.flatMap(({ text }) => keyIn(text) ?? []))
  const queued = Map.groupBy(outbox, ({ text }) => keyIn(text) ?? '')
  for (const key of new Set(keys.values())) {
    const replies = queued.get(key) ?? []
    const times = shown.get(key) ?? 0
    tally.accept()
    if (replies.length > 1 || times > 1)
      tally.report('toldTwice', `operators got ${times} notices of ${key}, and ${replies.length} notices were queued`)
    judgeShown(tally, `the notice of ${key} to operators`, times, replies)
  }
  return tally
}

/** A reply of which a part is refused arrives once, without that part. */
function judgeFallbacks({ messages, delivered }: HeldRecord, { outbox, sessions }: WordsView, rowsOf: RowsOf): Tally {
  const tally = new Tally('replies that fall back')
  const said = countsOf(sessions.flatMap((session) => session.said.flatMap(saidMarks)))
  const markOfReply = (text: string | null): string => /to (chaos-\d{6})/.exec(text ?? '')?.[1] ?? ''
  const shown = countsOf(delivered.map(({ text }) => markOfReply(text)))
  const queued = Map.groupBy(outbox, ({ text }) => markOfReply(text))
  for (const message of messages.filter(({ fallback }) => fallback !== undefined)) {
    const { mark } = message
    const [row, another] = rowsOf(message)
    const [turns, times, replies] = [said.get(mark) ?? 0, shown.get(mark) ?? 0, queued.get(mark) ?? []]
    tally.accept()
    if (row?.state !== 'done' || turns === 0) {
      tally.report(missedAs(row?.state), `${mark} is ${row?.state ?? 'missing'}, and has ${turns} turns: ${row?.error}`)
      continue
    }
    if (another || turns > 1) tally.report('doubled', `${mark} has ${turns} turns`)
    if (times > 1 || replies.length > 1)
      tally.report('toldTwice', `${mark} was answered ${times} times, and ${replies.length} replies were queued`)
    judgeShown(tally, `the reply to ${mark}`, times, replies)
  }
  const numbers = new Map(outbox.map(({ text, number }) => [markOfReply(text), number]))
  for (const chat of Map.groupBy(delivered, ({ channel, chat }) => `${channel} ${chat}`).values()) {
    const names = chat.map(({ text }) => markOfReply(text)).filter((mark) => mark !== '')
    reportDisorder(tally, names, (mark) => numbers.get(mark))
  }
  return tally
}

/** A reply that was queued once is on the platform once, unless a kill cut its only send. */
function judgeShown(tally: Tally, name: string, times: number, replies: readonly OutboxRow[]): void {
  const [reply] = replies
  if (reply?.state === 'ambiguous') tally.beUncertain()
  else if (times === 0)
    tally.report(missedAs(reply?.state), `${name} is ${reply?.state ?? 'missing'}: ${reply?.error ?? 'it was never queued'}`)
}
