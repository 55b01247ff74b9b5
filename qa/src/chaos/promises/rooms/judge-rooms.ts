/** Judges shared rooms: every word once, in order, and in its own room alone. Pure. */
import { gatewayText, type InboxEntry } from '@sluice/sdk'
import { countsOf } from '../../history.ts'
import type { WordsView } from '../read-words.ts'
import { missedAs, reportDisorder, Tally } from '../tally.ts'
import type { RoomPlace } from './places.ts'
import { type RoomWord, type RoomWordKind, replyMark } from './rooms-play.ts'

export interface RoomsRecord {
  readonly words: readonly RoomWord[]
  readonly rooms: readonly RoomPlace[]
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
  const { words, rooms, requests, leaks } = record
  const rows = new Map(view.inbox.map((row) => [`${row.channel} ${row.messageId}`, row]))
  const rowOf = ({ room, id }: RoomWord): InboxEntry | undefined => rows.get(`${room.channel} ${id}`)
  const texts = view.sessions.flatMap(({ said }) => said)
  const times = countsOf(texts.flatMap((text) => [...text.matchAll(/(?:do|hear|slow) (chaos-\d{6})/g)].map(([, mark = '']) => mark)))
  const of = (kind: RoomWordKind): readonly RoomWord[] => words.filter((word) => word.kind === kind)

  const byNumber = new Map(view.inbox.map((row) => [row.number, row]))
  const stopNumbers = of('stop').map((stop) => ({ ...stop, number: rowOf(stop)?.number ?? 0 }))
  const fateOf = (word: RoomWord): Fate => {
    const row = rowOf(word)
    const head = row?.joinedTo === undefined ? row : byNumber.get(row.joinedTo)
    const mayStop = ({ room, person, number }: (typeof stopNumbers)[number]): boolean =>
      room === word.room && (person === word.person || person === room.operator) && number > (row?.number ?? number)
    // The turn of a stopped message may have begun. One that waited has a reason.
    const isEnded = head?.state === 'done' && (head.turnId !== null || head.error?.startsWith('stopped by ') === true)
    return { times: times.get(word.mark) ?? 0, row, isStopped: isEnded && stopNumbers.some(mayStop) }
  }

  const said = new Tally('messages to the bot')
  for (const word of of('do')) judgeWord(said, word, fateOf(word))
  const heard = new Tally('overheard messages')
  // The next turn of a room reads the overheard messages, and may have to wait.
  const waiting = new Map(
    words.flatMap((word) => [rowOf(word)].filter((row) => missedAs(row?.state) === 'unfinished').map((row) => [word.room, row])),
  )
  for (const word of of('hear')) judgeWord(heard, word, { times: times.get(word.mark) ?? 0, row: waiting.get(word.room), isStopped: false })
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
      return row && row.joinedTo === undefined ? [[mark, row.number] as const] : []
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
  return [said, heard, stops, commands, replies, leaked]
}

interface Fate {
  /** In how many turns the words are. */
  readonly times: number
  /** The message that brings the words into a turn: their own, or one that waits in their room. */
  readonly row: InboxEntry | undefined
  /** Whether a `/stop` with a higher number, of the writer or of an operator, ended the message or its turn. */
  readonly isStopped: boolean
}

function judgeWord(tally: Tally, { mark, kind, room, person }: RoomWord, { times, row, isStopped }: Fate): void {
  tally.accept()
  const name = `"${kind} ${mark}" of ${person} in ${room.chat}`
  if (times === 0 && !isStopped)
    tally.report(missedAs(row?.state), `${name} is in no turn${row ? `, and message ${row.number} is ${row.state}: ${row.error}` : ''}`)
  if (times > 1) tally.report('doubled', `${name} is in ${times} turns`)
}
