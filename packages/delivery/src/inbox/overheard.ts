/**
 * Keeps the messages of a shared room that are not addressed to the bot, for its next turn: at most 50, and for a day. They are one value
 * below the keys of their session, so that they are erased with it.
 */
import { type Clock, hasWordsOfOthers, type Inbound, type KeyValue, type Standing, type Store, sessionKeys, wordsOf } from '@sluice/sdk'
import * as v from 'valibot'

/** The owner of the keys. */
const OVERHEARD = 'overheard'
const LINES_MAX = 50
const DAY_MS = 24 * 3_600_000
const TEXT_CHARS_MAX = 2000
/** Other processes may write the same value between a read and a write. */
const ATTEMPTS_MAX = 20
/** The most rooms whose old messages one sweep removes. */
const ROOMS_MAX = 10_000

const lineSchema = v.object({
  id: v.string(),
  sender: v.string(),
  name: v.exactOptional(v.string()),
  standing: v.picklist(['operator', 'client', 'listed', 'stranger', 'unverified']),
  text: v.string(),
  atMs: v.number(),
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

export class Overheard {
  readonly #keys: KeyValue
  readonly #clock: Pick<Clock, 'nowMs'>

  constructor({ store, clock }: { readonly store: Pick<Store, 'keyValue'>; readonly clock: Pick<Clock, 'nowMs'> }) {
    this.#keys = store.keyValue(OVERHEARD)
    this.#clock = clock
  }

  /** Resolves once the line is durable. A message that is kept already is not kept again. */
  async add(session: string, line: OverheardLine): Promise<void> {
    await this.#update(session, (lines) => (lines.some(({ id }) => id === line.id) ? lines : [...lines, line]))
  }

  /** Replaces the text of a line, if its sender has edited it, or with `undefined` removes the line. Resolves to whether the session had it. */
  async change(session: string, id: string, edit: OverheardLine | undefined): Promise<boolean> {
    const has = (await this.#read(session)).lines.some((line) => line.id === id)
    if (has) await this.#update(session, (lines) => lines.flatMap((line) => (line.id === id ? changed(line, edit) : [line])))
    return has
  }

  /** Resolves to the lines of the last day up to a time, oldest first. */
  async before(session: string, atMs: number): Promise<readonly OverheardLine[]> {
    return this.#recent((await this.#read(session)).lines).filter((line) => line.atMs <= atMs)
  }

  async drop(session: string, dropped: readonly OverheardLine[]): Promise<void> {
    if (dropped.length === 0) return
    const ids = new Set(dropped.map(({ id }) => id))
    await this.#update(session, (lines) => lines.filter(({ id }) => !ids.has(id)))
  }

  /** Removes the lines of all rooms that are older than a day. */
  async sweep(): Promise<void> {
    for (const { key, value } of await this.#keys.list('', ROOMS_MAX)) {
      const lines = v.parse(linesSchema, value)
      const recent = this.#recent(lines)
      if (recent.length < lines.length) await this.#keys.swap(key, value, recent.length > 0 ? recent : undefined)
    }
  }

  /** A time far ahead means that the clock was set back. */
  #recent(lines: readonly OverheardLine[]): readonly OverheardLine[] {
    const nowMs = this.#clock.nowMs()
    return lines.filter(({ atMs }) => Math.abs(nowMs - atMs) <= DAY_MS)
  }

  async #read(session: string) {
    const value = await this.#keys.get(keyOf(session))
    return { value, lines: v.parse(linesSchema, value) }
  }

  async #update(session: string, change: (lines: readonly OverheardLine[]) => readonly OverheardLine[]): Promise<void> {
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      const { value, lines } = await this.#read(session)
      const next = this.#recent(change(lines)).slice(-LINES_MAX)
      if (value === undefined && next.length === 0) return
      if (await this.#keys.swap(keyOf(session), value, next.length > 0 ? next : undefined)) return
    }
    throw new Error('another process keeps changing the overheard messages of the room')
  }
}

/** A person edits only own messages; a moderator may delete those of others. A text with words of others stays unverified. */
function changed(line: OverheardLine, edit: OverheardLine | undefined): OverheardLine[] {
  if (!edit) return []
  const { text } = edit
  const standing = line.standing === 'unverified' ? line.standing : edit.standing
  return [edit.sender === line.sender ? { ...line, text, standing } : line]
}

const keyOf = (session: string): string => `${sessionKeys(session)}lines`

const shortened = (text: string): string => (text.length <= TEXT_CHARS_MAX ? text : `${text.slice(0, TEXT_CHARS_MAX).toWellFormed()}…`)
