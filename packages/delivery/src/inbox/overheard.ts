/**
 * Keeps the messages of a shared room that are not addressed to the bot, for its next turn: at most 50, and for a day. They are one value
 * below the keys of their session, so that they are erased with it. A line names the turn that reads it from before that turn runs, so
 * that a crash at any instant repeats no line. Only the id of a line that was read stays, because a platform may deliver a message again.
 */
import { BoundedMap } from '@sluice/kit'
import { type Clock, hasWordsOfOthers, type Inbound, type KeyValue, type Standing, type Store, sessionKeys, wordsOf } from '@sluice/sdk'
import * as v from 'valibot'
import { isThreadsKey, OverheardThreads } from './overheard-threads.ts'
import { updateValue } from './update-value.ts'

/** The owner of the keys. */
const OVERHEARD = 'overheard'
const LINES_MAX = 50
/** The most ids of lines that were read. */
const READ_MAX = 100
const DAY_MS = 24 * 3_600_000
const TEXT_CHARS_MAX = 2000
/** The most turns that run at the same time and whose lines are dropped with them, not by the next turn. */
const READERS_MAX = 1000
/** The most rooms whose old messages one sweep removes. */
const ROOMS_MAX = 10_000

const lineSchema = v.object({
  id: v.string(),
  sender: v.string(),
  name: v.exactOptional(v.string()),
  standing: v.picklist(['operator', 'client', 'listed', 'stranger', 'unverified']),
  text: v.string(),
  atMs: v.number(),
  /** The turn that reads the line. */
  turn: v.exactOptional(v.string()),
  /** Only the id of a line that was read is kept. */
  isRead: v.exactOptional(v.literal(true)),
})
/** A message that was overheard. */
export type OverheardLine = v.InferOutput<typeof lineSchema>

const linesSchema = v.fallback(v.array(lineSchema), [])

/** Returns a message as it is kept: its words, and the names of its files. Words of others in it make all of it unverified. */
export function overheardLine(message: Inbound, standing: Standing, atMs: number): OverheardLine {
  const { id, sender, name, attachments = [] } = message
  const files = attachments.map((file) => `[${file.name}]`)
  const text = [wordsOf(message), ...files].filter((part) => part.trim() !== '').join('\n')
  return {
    id,
    sender,
    ...(name !== undefined && { name }),
    standing: hasWordsOfOthers(message) ? 'unverified' : standing,
    text: shortened(text),
    atMs,
  }
}

/** The turn that reads the lines of its room. */
export interface ReadingTurn {
  readonly turnId: string
  /** When the message of the turn was received. The turn reads the lines up to this time. */
  readonly atMs: number
  /** Whether the turn goes on from a checkpoint. It then reads no further lines. */
  readonly isResumed: boolean
}

/** Resolves to the sessions with a beginning in which messages were overheard. */
export async function overheardSessions({ keyValue }: Pick<Store, 'keyValue'>, prefix: string): Promise<readonly string[]> {
  const begin = sessionKeys('').slice(0, -1)
  const found = await keyValue(OVERHEARD).list(`${begin}${prefix}`, ROOMS_MAX)
  return found.map(({ key }) => key.slice(begin.length, key.indexOf('\0')))
}

interface OverheardOptions {
  readonly store: Pick<Store, 'keyValue'> & { readonly turns: Pick<Store['turns'], 'get'> }
  readonly clock: Pick<Clock, 'nowMs'>
}

interface StoredLines {
  readonly value: unknown
  readonly lines: readonly OverheardLine[]
}

export class Overheard {
  readonly #keys: KeyValue
  readonly #threads: OverheardThreads
  /** The turns that have read lines and have not ended. */
  readonly #readers = new BoundedMap<string, true>(READERS_MAX)
  readonly #turns: OverheardOptions['store']['turns']
  readonly #clock: Pick<Clock, 'nowMs'>

  constructor({ store, clock }: OverheardOptions) {
    this.#keys = store.keyValue(OVERHEARD)
    this.#turns = store.turns
    this.#clock = clock
    this.#threads = new OverheardThreads(this.#keys, (place) => this.#isRecent(place))
  }

  /**
   * Resolves once the line is durable. A message that is kept already, or was read, is not kept again. `isFoundWithoutThread`: the platform
   * may report a change of the message without its thread.
   */
  async add(session: string, line: OverheardLine, { isFoundWithoutThread = false } = {}): Promise<void> {
    // Before the line, so that a change that comes after a crash finds every line.
    if (isFoundWithoutThread) await this.#threads.keep(session, line)
    await this.#update(keyOf(session), (lines) => (lines.some(({ id }) => id === line.id) ? lines : [...lines, line]))
  }

  /**
   * Replaces the text of a line, if its sender has edited it, or with `undefined` removes the line; one that was read stays as it is. With
   * `lacksThread` the line may be in another thread of the room than the session. Resolves to whether there is such a line.
   */
  async change(session: string, id: string, edit: OverheardLine | undefined, { lacksThread = false } = {}): Promise<boolean> {
    if (await this.#changeAt(keyOf(session), { id, edit })) return true
    for (const other of lacksThread ? await this.#threads.sessionsOf(session, id) : [])
      if (await this.#changeAt(keyOf(other), { id, edit })) return true
    return false
  }

  async #changeAt(key: string, { id, edit }: { readonly id: string; readonly edit: OverheardLine | undefined }): Promise<boolean> {
    const found = await this.#read(key)
    const line = found.lines.find((one) => one.id === id)
    const isOf = (one: OverheardLine): boolean => one.id === id && !one.isRead
    if (line && !line.isRead) await this.#update(key, (lines) => lines.flatMap((one) => (isOf(one) ? changed(one, edit) : [one])), found)
    return line !== undefined
  }

  /** Resolves to the lines of the last day up to a time that no turn has read, oldest first. */
  async before(session: string, atMs: number): Promise<readonly OverheardLine[]> {
    const { lines } = await this.#read(keyOf(session))
    const { ended } = await this.#turnsOf(lines)
    return this.#recent(lines).filter((line) => line.atMs <= atMs && !isRead(line, ended))
  }

  /**
   * Gives a turn that begins the lines that no turn has read. The lines of a turn that a crash has interrupted stay with it, although another
   * person's turn may run before it goes on. Resolves to all lines of the turn, oldest first.
   */
  async take(session: string, { turnId, atMs, isResumed }: ReadingTurn): Promise<readonly OverheardLine[]> {
    const found = await this.#read(keyOf(session))
    if (found.lines.every((line) => line.isRead)) return []
    const { ended, open } = await this.#turnsOf(found.lines)
    const taken = (line: OverheardLine): OverheardLine => {
      if (isRead(line, ended)) return readLine(line)
      const isOfAnother = line.turn !== undefined && line.turn !== turnId && open.has(line.turn)
      return isResumed || isOfAnother || line.atMs > atMs ? line : { ...line, turn: turnId }
    }
    const lines = (await this.#update(keyOf(session), (before) => before.map(taken), found)).filter(
      (line) => line.turn === turnId && !line.isRead,
    )
    if (lines.length > 0) this.#readers.set(turnId, true)
    return lines
  }

  /** Removes the lines of a turn that has ended. After a crash before it, the next turn does. */
  async drop(session: string, turnId: string): Promise<void> {
    if (!this.#readers.delete(turnId)) return
    const ended = new Set([turnId])
    await this.#update(keyOf(session), (before) => before.map((line) => (isRead(line, ended) ? readLine(line) : line)))
  }

  /** Ends the lines up to a time that no turn has read. */
  async end(session: string, atMs: number): Promise<void> {
    const found = await this.#read(keyOf(session))
    if (found.lines.some((line) => isUnreadAt(line, atMs)))
      await this.#update(keyOf(session), (before) => before.map((line) => (isUnreadAt(line, atMs) ? readLine(line) : line)), found)
  }

  /** Removes the lines of all rooms that are older than a day. */
  async sweep(): Promise<void> {
    for (const { key, value } of await this.#keys.list('', ROOMS_MAX)) {
      if (isThreadsKey(key)) {
        await this.#threads.sweep({ key, value })
        continue
      }
      const lines = v.parse(linesSchema, value)
      const recent = this.#recent(lines)
      if (recent.length < lines.length) await this.#keys.swap(key, value, recent.length > 0 ? recent : undefined)
    }
  }

  /** Resolves to the turns that have lines: those that have ended with an answer, and those that have not ended. */
  async #turnsOf(lines: readonly OverheardLine[]): Promise<{ readonly ended: ReadonlySet<string>; readonly open: ReadonlySet<string> }> {
    const ended = new Set<string>()
    const open = new Set<string>()
    for (const id of new Set(lines.flatMap((line) => (line.isRead ? [] : (line.turn ?? []))))) {
      const turn = await this.#turns.get(id)
      if (turn?.status === 'done') ended.add(id)
      if (turn?.endedAtMs === null) open.add(id)
    }
    return { ended, open }
  }

  #recent(lines: readonly OverheardLine[]): readonly OverheardLine[] {
    return lines.filter((line) => this.#isRecent(line))
  }

  /** A time far ahead means that the clock was set back. */
  #isRecent({ atMs }: { readonly atMs: number }): boolean {
    return Math.abs(this.#clock.nowMs() - atMs) <= DAY_MS
  }

  async #read(key: string): Promise<StoredLines> {
    const value = await this.#keys.get(key)
    return { value, lines: v.parse(linesSchema, value) }
  }

  /** Changes the lines, which the caller may have read already. Resolves to the lines as they are stored then. */
  async #update(key: string, change: (lines: readonly OverheardLine[]) => readonly OverheardLine[], found?: StoredLines) {
    const next = (value: unknown): readonly OverheardLine[] | undefined => {
      const kept = this.#recent(change(v.parse(linesSchema, value)))
      const lines = [...kept.filter((line) => line.isRead).slice(-READ_MAX), ...kept.filter((line) => !line.isRead).slice(-LINES_MAX)]
      return lines.length > 0 ? lines : undefined
    }
    return (await updateValue(this.#keys, key, next, found)) ?? []
  }
}

/** A person edits only own messages, and removes one by an edit without a text; a moderator may delete those of others. A text with words of others stays unverified. */
function changed(line: OverheardLine, edit: OverheardLine | undefined): OverheardLine[] {
  if (!edit) return []
  const { text } = edit
  const standing = line.standing === 'unverified' ? line.standing : edit.standing
  if (edit.sender !== line.sender) return [line]
  return text === '' ? [] : [{ ...line, text, standing }]
}

const isRead = (line: OverheardLine, ended: ReadonlySet<string>): boolean =>
  line.isRead === true || (line.turn !== undefined && ended.has(line.turn))

const isUnreadAt = (line: OverheardLine, atMs: number): boolean => !line.isRead && line.atMs <= atMs

const readLine = ({ id, atMs }: OverheardLine): OverheardLine => ({ id, sender: '', standing: 'unverified', text: '', atMs, isRead: true })

const keyOf = (session: string): string => `${sessionKeys(session)}lines`

const shortened = (text: string): string => (text.length <= TEXT_CHARS_MAX ? text : `${text.slice(0, TEXT_CHARS_MAX).toWellFormed()}…`)
