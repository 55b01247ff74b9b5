/** Judges shared rooms: every word once, in order, and in its own room alone. Pure. */
import { gatewayText, type InboxEntry } from '@sluice/sdk'
import { countsOf } from '../../history.ts'
import type { WordsView } from '../read-words.ts'
import { missedAs, reportDisorder, Tally } from '../tally.ts'
import type { RoomPlace } from './places.ts'
import { type RoomWord, type RoomWordKind, replyMark } from './room-word.ts'

export interface RoomsRecord {
  readonly words: readonly RoomWord[]
  readonly rooms: readonly RoomPlace[]
  /** When each word first reached the model, in milliseconds since 1970, by mark. */
  readonly asked: ReadonlyMap<string, number>
  /** Requests to the model. */
  readonly requests: number
  readonly leaks: readonly string[]
}

const STOPPED = gatewayText('stopped', {})
const NOTHING_STOPPED: readonly string[] = [gatewayText('nothing_to_stop', {}), gatewayText('not_your_turn', {})]
const COUNT = '7'
const [WAITED = '', WAITED_END = ''] = gatewayText('stopped_waiting', {}, { messages: COUNT }).split(COUNT)

/** Whether a text answers `/stop`: nothing was stopped; or a turn, or messages that waited, or both. */
function isStopAnswer(text: string | null): boolean {
  if (text === null) return false
  if (text === STOPPED || NOTHING_STOPPED.includes(text)) return true
  const waited = text.startsWith(`${STOPPED} `) ? text.slice(STOPPED.length + 1) : text
  return waited.startsWith(WAITED) && waited.endsWith(WAITED_END)
}

export function judgeRooms(record: RoomsRecord, view: WordsView): readonly Tally[] {
  const { words, rooms, asked, requests, leaks } = record
  const rows = new Map(view.inbox.map((row) => [`${row.channel} ${row.messageId}`, row]))
  const rowOf = ({ room, id }: RoomWord): InboxEntry | undefined => rows.get(`${room.channel} ${id}`)
  const texts = view.sessions.flatMap(({ said }) => said)
  const times = countsOf(
    texts.flatMap((text) => [...text.matchAll(/(?:do|hear|remark|slow|direct) (chaos-\d{6})/g)].map(([, mark = '']) => mark)),
  )
  const of = (kind: RoomWordKind): readonly RoomWord[] => words.filter((word) => word.kind === kind)

  const byNumber = new Map(view.inbox.map((row) => [row.number, row]))
  const stopRows = of('stop').map((stop) => ({ ...stop, row: rowOf(stop) }))
  const fateOf = (word: RoomWord): Fate => {
    const row = rowOf(word)
    const head = row?.joinedTo === undefined ? row : byNumber.get(row.joinedTo)
    const commands = stopRows.flatMap(({ room, person, row: stop }) =>
      room === word.room && (person === word.person || person === room.operator) && stop ? [{ person, stop }] : [],
    )
    const after = commands.filter(({ stop }) => row !== undefined && stop.number > row.number)
    // The turn of a stopped message may have begun. One that waited has a reason.
    const isEnded = head?.state === 'done' && (head.turnId !== null || head.error?.startsWith('stopped by ') === true)
    const askedMs = asked.get(word.mark) ?? 0
    const isAnswered = head !== undefined && head.replies.length > 0
    return {
      times: times.get(word.mark) ?? 0,
      row,
      isStopped: isEnded && after.length > 0,
      isSilent: head?.state === 'done' && !isAnswered,
      // On Slack, a message to the bot begins a thread, and the command is outside of it.
      isLate: isAnswered && word.room.overhears && after.some(({ stop: { endedAtMs } }) => endedAtMs !== null && askedMs > endedAtMs),
      isAcross: commands.some(
        ({ person, stop: { number } }) =>
          person === word.person && row !== undefined && head !== undefined && head.number < number && number < row.number,
      ),
    }
  }

  const said = new Tally('messages to the bot')
  for (const word of [...of('do'), ...of('direct')]) judgeWord(said, word, fateOf(word))
  const heard = new Tally('overheard messages')
  // The next turn of a room reads the overheard messages, and may have to wait.
  const waiting = new Map(
    words.flatMap((word) => [rowOf(word)].filter((row) => missedAs(row?.state) === 'unfinished').map((row) => [word.room, row])),
  )
  for (const word of of('hear')) judgeWord(heard, word, { times: times.get(word.mark) ?? 0, row: waiting.get(word.room) })
  const remarks = new Tally('judged remarks')
  for (const word of of('remark')) judgeWord(remarks, word, { ...fateOf(word), isSilent: false })
  const stops = new Tally('stopped messages')
  for (const word of of('slow')) judgeWord(stops, word, fateOf(word))
  const commands = new Tally('answers to /stop')
  for (const word of of('stop')) {
    const row = rowOf(word)
    commands.accept()
    if (row?.state !== 'done') commands.report(missedAs(row?.state), `the /stop ${word.id} is ${row?.state ?? 'missing'}: ${row?.error}`)
  }
  for (const room of rooms) {
    const due = of('stop').filter((word) => word.room === room).length
    const answers = view.outbox.filter(({ channel, to, text }) => channel === room.channel && to.to === room.chat && isStopAnswer(text))
    const uncertain = answers.filter(({ state }) => state === 'ambiguous').length
    const shown = room.delivered().filter(isStopAnswer).length
    for (let one = 0; one < uncertain; one++) commands.beUncertain()
    const unended = answers.find(({ state }) => missedAs(state) === 'unfinished') ?? waiting.get(room)
    if (answers.length < due || shown + uncertain < due)
      commands.report(missedAs(unended?.state), `${room.chat} has ${shown} answers to ${due} /stop`)
    if (answers.length > due || shown > due) commands.report('toldTwice', `${room.chat} has ${shown} answers to ${due} /stop`)
  }

  for (const session of view.sessions) {
    const marks = session.said.flatMap((text) => [...text.matchAll(/do (chaos-\d{6})/g)].map(([, mark = '']) => mark))
    const byMark = new Map(words.map((word) => [word.mark, word]))
    for (const own of Map.groupBy(marks, (mark) => byMark.get(mark)?.person).values())
      reportDisorder(said, own, (mark) => Number(mark.slice(-6)))
    const heads = marks.flatMap((mark) => {
      const word = byMark.get(mark)
      const row = word && rowOf(word)
      return row && row.joinedTo === undefined && !mayBePassed(word) ? [[mark, row.number] as const] : []
    })
    const numbers = new Map(heads)
    reportDisorder(said, [...numbers.keys()], (mark) => numbers.get(mark))
  }

  const replies = new Tally('replies')
  const queued = Map.groupBy(view.outbox, ({ text }) => replyMark(text))
  for (const room of rooms) {
    const marks = room.delivered().flatMap((text) => replyMark(text) || [])
    for (const [mark, count] of countsOf(marks))
      if (count > 1) replies.report('toldTwice', `${mark} was answered ${count} times in ${room.chat}`)
    // Replies in different threads do not wait for each other.
    if (room.overhears) reportDisorder(replies, marks, (mark) => queued.get(mark)?.[0]?.number)
  }
  const shown = new Set(rooms.flatMap((room) => room.delivered().map(replyMark)))
  for (const [mark, own] of queued) {
    if (mark === '') continue
    replies.accept()
    if (own.length > 1) replies.report('doubled', `${mark} has ${own.length} replies`)
    if (own.some(({ state }) => state === 'ambiguous')) replies.beUncertain()
    else if (!shown.has(mark)) replies.report(missedAs(own[0]?.state), `the reply to ${mark} is ${own[0]?.state}: ${own[0]?.error}`)
  }

  const leaked = new Tally('requests with words of another room')
  for (let request = 0; request < requests; request++) leaked.accept()
  for (const leak of leaks) leaked.report('doubled', leak)
  return [said, heard, remarks, stops, commands, replies, leaked]
}

/**
 * Whether the word may wait for its writer's own limit, and hold up nobody else. After a restart, that holds for an operator too, who counts as
 * any listed person until the message is read.
 */
const mayBePassed = ({ person, room }: RoomWord): boolean =>
  room.limited !== undefined && (person === room.limited || person === room.operator)

interface Fate {
  /** In how many turns the words are. */
  readonly times: number
  /** The message that brings the words into a turn: their own, or one that waits in their room. */
  readonly row: InboxEntry | undefined
  /** Whether a `/stop` with a higher number, of the writer or of an operator, ended the message or its turn. */
  readonly isStopped?: boolean
  /** Whether the turn of the words ended without an answer. */
  readonly isSilent?: boolean
  /** Whether the words first reached the model after such a `/stop` had ended, and were answered. */
  readonly isLate?: boolean
  /** Whether the words joined a message that the writer wrote before a `/stop`. */
  readonly isAcross?: boolean
}

function judgeWord(tally: Tally, { mark, kind, room, person }: RoomWord, fate: Fate): void {
  const { times, row, isStopped = false } = fate
  tally.accept()
  const name = `"${kind} ${mark}" of ${person} in ${room.chat}`
  if (times === 0 && !isStopped)
    tally.report(missedAs(row?.state), `${name} is in no turn${row ? `, and message ${row.number} is ${row.state}: ${row.error}` : ''}`)
  if (times === 1 && !isStopped && fate.isSilent) tally.report('lost', `${name} has no answer`)
  if (times > 1) tally.report('doubled', `${name} is in ${times} turns`)
  if (fate.isLate) tally.report('outOfOrder', `${name} was answered although a /stop had ended before its turn`)
  if (fate.isAcross) tally.report('outOfOrder', `${name} joined a message that was written before a /stop`)
}
