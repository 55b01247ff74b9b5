/**
 * Edits and deletions of messages. One that comes before the turn of its message begins changes the message; later, the next turn of the
 * session is told about it.
 */
import { type Inbound, type OwnedStore, sessionKeys } from '@sluice/sdk'

const LANE = 'change:'
/** The owner of the keys under which changes wait for the next turn. */
const OWNER = 'delivery'
const TEXT_CHARS_MAX = 4000
const BEFORE_CHARS_MAX = 200
/** The most changes that one turn is told about. */
const CHANGES_MAX = 20

/** The lane of a change, in the place of a session. Changes overtake the turn that runs. */
export const changeLane = (session: string): string => `${LANE}${session}`

/** True for the report of a deletion for which the platform names no sender, so that no allowlist can be asked. */
export const isUnsignedDeletion = ({ sender, changes }: Inbound): boolean => changes?.what === 'deleted' && sender === ''

/** A change that the next turn is told about. */
interface LateChange {
  readonly what: 'edited' | 'deleted'
  /** The beginning of the text before the change. */
  readonly before: string
  readonly text: string
}

/** Carries out the change that a message reports, and ends the message. After a crash it is carried out again, to the same end. */
export async function runChange(owned: OwnedStore, number: number, nowMs: number): Promise<void> {
  const entry = await owned.inbox.get(number)
  const message = entry?.message
  if (!entry || entry.endedAtMs !== null || !message?.changes) return
  const changed = await owned.inbox.change(number, nowMs)
  if (changed.outcome === 'done') return
  if (changed.outcome === 'begun') {
    const before = shortened(changed.text, BEFORE_CHARS_MAX)
    const late: LateChange = { what: message.changes.what, before, text: shortened(message.text, TEXT_CHARS_MAX) }
    if (late.what === 'deleted' || message.text !== changed.text)
      await owned.keyValue(OWNER).set(`${keysOf(changed.session)}${padded(number)}`, late)
  }
  await owned.inbox.done(number, nowMs)
}

/** The changes that the next turn of a session is told about. */
export interface LateChanges {
  /** Empty without changes, else sentences that end with an empty line. */
  readonly text: string
  /** Call it when the turn has ended. A crash before it repeats the text in one more turn. */
  told(): Promise<void>
}

export async function lateChanges(owned: OwnedStore, session: string): Promise<LateChanges> {
  const keys = owned.keyValue(OWNER)
  const found = await keys.list(keysOf(session), CHANGES_MAX)
  const lines = found.map(({ value }) => sentenceOf(value as LateChange))
  return {
    text: lines.length === 0 ? '' : `${lines.join('\n')}\n\n`,
    async told() {
      for (const { key } of found) await keys.delete(key)
    },
  }
}

const sentenceOf = ({ what, before, text }: LateChange): string =>
  what === 'deleted'
    ? `(The sender deleted an earlier message, which began: ${JSON.stringify(before)})`
    : `(The sender edited an earlier message, which began: ${JSON.stringify(before)} It now reads: ${JSON.stringify(text)})`

const keysOf = (session: string): string => `${sessionKeys(session)}change:`
/** Numbers that sort as texts. */
const padded = (number: number): string => String(number).padStart(16, '0')
const shortened = (text: string, max: number): string => (text.length <= max ? text : `${text.slice(0, max).toWellFormed()}…`)
