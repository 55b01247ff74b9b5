/** Judges what became of albums, edits, quotes and forwards. Pure. */

import { createHash } from 'node:crypto'
import type { InboxEntry } from '@sluice/sdk'
import { toldChanges, type WordsView, withoutChanges } from '../read-words.ts'
import { missedAs, reportDisorder, Tally } from '../tally.ts'
import type { Item } from './item.ts'

/** Messages of an album that come further apart may be several turns: the daemon waits 1.5 s for the next one, also while it reads the last. */
const GAP_MS_MAX = 1200
/** The line about a quoted message. */
const QUOTE = /^\(The sender replies to .*$/gm
const OWN = /do (chaos-\d{6})/g

interface Said {
  readonly text: string
  /** The marks of the words of the person. */
  readonly own: readonly string[]
}

/** `undelivered` holds the items of which the daemon has not acknowledged all messages. */
export function judgeArrivals(items: readonly Item[], undelivered: ReadonlySet<Item>, { inbox, sessions }: WordsView): readonly Tally[] {
  const said = sessions.flatMap(({ said: texts }) => texts.map(saidOf))
  const byMark = new Map<string, Said[]>()
  for (const one of said) for (const mark of one.own) byMark.set(mark, [...(byMark.get(mark) ?? []), one])
  const told = sessions.flatMap(({ said: texts }) => texts.flatMap(toldChanges))
  const rows = Map.groupBy(inbox, ({ channel, messageId }) => `${channel} ${messageId}`)
  const tallies = { text: new Tally('messages'), album: new Tally('albums'), quote: new Tally('quotes'), forward: new Tally('forwards') }
  const edits = new Tally('edits')
  const byOwn = new Map(
    items.flatMap((item) => [item.mark, ...(item.edit === undefined ? [] : [item.edit])].map((mark) => [mark, item] as const)),
  )
  const rowsOf = (item: Item): readonly InboxEntry[] => item.delivered.flatMap(({ id }) => rows.get(`${item.channel} ${id}`) ?? [])
  const missed = (item: Item): 'unfinished' | 'lost' =>
    undelivered.has(item) || rowsOf(item).some(({ state }) => missedAs(state) === 'unfinished') ? 'unfinished' : 'lost'
  /** The people of whom a message has not ended. Their next turn may tell of an edit. */
  const late = new Set(items.filter((item) => missed(item) === 'unfinished').map(personOf))
  const numberOf = (item: Item | undefined): number | undefined => rows.get(`${item?.channel} ${item?.delivered[0]?.id}`)?.[0]?.number
  for (const item of items) {
    const { mark, edit, kind, channel, quotes } = item
    const tally = tallies[kind]
    const [as, asEdited] = [byMark.get(mark) ?? [], edit === undefined ? [] : (byMark.get(edit) ?? [])]
    const turns = as.length + asEdited.length
    tally.accept()
    if (turns === 0) tally.report(missed(item), `no turn has ${mark} on ${channel}`)
    if (turns > 1) tally.report('doubled', `${turns} turns have ${mark} on ${channel}`)
    for (const { id } of item.delivered)
      if ((rows.get(`${channel} ${id}`)?.length ?? 0) !== 1)
        tally.report(missed(item), `${mark} on ${channel} has no row, or several: ${id}`)
    if (quotes !== undefined && as[0] && !(as[0].text.match(QUOTE) ?? []).some((quote) => quote.includes(quotes)))
      tally.report('lost', `${mark} on ${channel} does not quote ${quotes}: ${as[0].text}`)
    if (kind === 'forward' && as[0] && !/forwarded message/.test(as[0].text))
      tally.report('lost', `${mark} on ${channel} did not arrive as a forward: ${as[0].text}`)
    if (edit !== undefined)
      judgeEdit(edits, {
        ...{ item, edit, isLate: late.has(personOf(item)), isReplaced: asEdited.length > 0 },
        times: told.filter((line) => line.includes(edit)).length,
      })
  }
  for (const item of items.filter(({ pictures }) => pictures.length > 0)) {
    // A picture is saved under the hash of its content.
    const names = item.pictures.map((picture) => `/${createHash('sha256').update(picture).digest('hex')}`)
    const counts = said.map(({ text }) => sumOf(names.map((name) => text.split(name).length - 1)))
    const [all, most] = [sumOf(counts), Math.max(...counts)]
    const detail = `${item.mark} on ${item.channel} has ${most} of ${names.length} pictures in one turn, and ${all} in all turns; they came at most ${Math.round(item.gapMs ?? 0)} ms apart`
    if (all > names.length) tallies.album.report('doubled', detail)
    else if (all < names.length) tallies.album.report(missed(item), detail)
    else if (most < names.length && (item.isTornApart || (item.gapMs ?? 0) > GAP_MS_MAX)) tallies.album.beUncertain()
    else if (most < names.length) tallies.album.report('lost', detail)
  }
  for (const { said: texts } of sessions) {
    const marks = texts.flatMap((text) => saidOf(text).own).map((mark) => byOwn.get(mark)?.mark ?? mark)
    // A turn shows a forward below the words that came after it.
    const ordered = marks.filter((mark) => byOwn.get(mark)?.kind !== 'forward')
    // Messages run as the daemon has got them. After an outage, a platform may deliver a newer message before the older ones.
    reportDisorder(tallies.text, ordered, (mark) => numberOf(byOwn.get(mark)))
  }
  return [...Object.values(tallies), edits]
}

interface JudgedEdit {
  readonly item: Item
  readonly edit: string
  /** Whether a message of the person has not ended. */
  readonly isLate: boolean
  /** Whether the turn of the message had the new words. */
  readonly isReplaced: boolean
  /** The number of turns that contain a notice of the edit. */
  readonly times: number
}

function judgeEdit(tally: Tally, { item: { mark, channel }, edit, isLate, isReplaced, times }: JudgedEdit): void {
  tally.accept()
  if (!isReplaced && times === 0) tally.report(isLate ? 'unfinished' : 'lost', `the edit ${edit} of ${mark} on ${channel} reached no turn`)
  if (isReplaced && times > 0)
    tally.report('doubled', `the edit ${edit} of ${mark} on ${channel} replaced its words, and a turn has a notice of it`)
  if (times > 1) tally.report('toldTwice', `the edit ${edit} of ${mark} on ${channel} has ${times} notices`)
}

const personOf = ({ channel, person }: Item): string => `${channel} ${person}`

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, number) => sum + number, 0)

function saidOf(text: string): Said {
  const words = withoutChanges(text).replace(QUOTE, '')
  return { text, own: [...words.matchAll(OWN)].map(([, mark = '']) => mark) }
}
