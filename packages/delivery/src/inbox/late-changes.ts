/**
 * Edits and deletions of messages whose turn had begun: the next turn of the session reads about them. They are kept with their writer,
 * because in a shared room the next turn may belong to another person.
 */
import {
  type Attachment,
  frameUntrusted,
  type Inbound,
  type OwnedStore,
  oneLine,
  STANDINGS,
  type Standing,
  sessionKeys,
  sourceOfMessage,
} from '@sluice/sdk'
import * as v from 'valibot'
import { isVouchedFor } from './vouched-for.ts'

/** The owner of the keys under which changes wait for the next turn. */
const OWNER = 'delivery'
const TEXT_CHARS_MAX = 4000
const BEFORE_CHARS_MAX = 200
/** The characters of an edit that a turn of another person than its writer reads: that person pays for the turn. */
const OTHERS_CHARS_MAX = 400
const NAME_CHARS_MAX = 64
const FILES_MAX = 10
const FILE_NAME_CHARS_MAX = 100
/** The most changes of one person that a session keeps, and of all people together. One turn reads about all of them. */
export const CHANGES_OF_SENDER_MAX = 10
export const CHANGES_MAX = 20
/** Releases before kept more. */
const LISTED_MAX = 200

/** A change as it is kept. Releases before kept neither writers nor their standing, so that nothing vouches for the words. */
const lateChangeSchema = v.object({
  what: v.picklist(['edited', 'deleted']),
  /** The writer of the message. */
  sender: v.optional(v.string(), 'unknown'),
  name: v.exactOptional(v.string()),
  /** The standing of the writer when the message was changed. */
  standing: v.optional(v.picklist(STANDINGS), 'unverified'),
  /** The beginning of the text before the change. */
  before: v.string(),
  text: v.string(),
  /** The names of the files that an edit put in the place of others. The session does not get them. */
  files: v.exactOptional(v.array(v.string())),
  /** When the platform says that the edit was made. */
  editedAtMs: v.exactOptional(v.number()),
  /** The number of the report of the change. */
  reported: v.exactOptional(v.number()),
  /** The turn that reads about it. */
  turn: v.exactOptional(v.string()),
})
type LateChange = v.InferOutput<typeof lateChangeSchema>

/** A change of a message whose turn had begun. */
export interface ReportedChange {
  /** The number of the message. */
  readonly number: number
  /** The session of the message. */
  readonly session: string
  readonly before: Inbound
  readonly report: Inbound
  /** The number of the report. */
  readonly reported: number
  readonly what: LateChange['what']
  /** The standing of the writer of the message. */
  readonly standing: Standing
}

/**
 * Keeps a change for the next turn of its session: the newest one of each message, and none for an edit that keeps the text and the files.
 * Beyond the bounds the oldest ones are dropped, first the changes of people with the lowest standing.
 */
export async function keepLateChange(
  owned: OwnedStore,
  { number, session, before, report, reported, what, standing }: ReportedChange,
): Promise<void> {
  const files = otherFiles(before, report)
  const { sender, name } = before
  const late: LateChange = {
    what,
    sender,
    ...(name !== undefined && { name }),
    standing: isUnproven(before) || isUnproven(report) ? 'unverified' : standing,
    before: shortened(before.text, BEFORE_CHARS_MAX),
    text: shortened(report.text, TEXT_CHARS_MAX),
    ...(files.length > 0 && { files }),
    ...(report.sentAtMs !== undefined && { editedAtMs: report.sentAtMs }),
    reported,
  }
  const keys = owned.keyValue(OWNER)
  const key = `${keysOf(session)}${padded(number)}`
  const listed = await keys.list(keysOf(session), LISTED_MAX)
  const kept = listed.map((one) => ({ key: one.key, late: v.parse(lateChangeSchema, one.value) }))
  const known = kept.find((one) => one.key === key)
  if (known && !isNewer(late, known.late)) return
  const isNothing = keepsWords(before, report)
  const dropped = isNothing ? [] : beyondBounds([...kept.filter((one) => one !== known), { key, late }])
  const values: [string, unknown][] = [
    [key, isNothing ? undefined : late],
    ...dropped.map((one): [string, unknown] => [one.key, undefined]),
  ]
  await keys.setAll(new Map(values))
}

/** Whether a report is that of an edit which keeps the text and the files of its message. */
export const keepsWords = (before: Inbound, report: Inbound): boolean =>
  report.changes?.what === 'edited' && report.text === before.text && otherFiles(before, report).length === 0

/** Edits may arrive in another order than they were made, and nothing follows a deletion. */
function isNewer({ what, editedAtMs = Number.POSITIVE_INFINITY }: LateChange, known: LateChange): boolean {
  if (what === 'deleted' || known.what === 'deleted') return what === 'deleted'
  return editedAtMs >= (known.editedAtMs ?? 0)
}

interface KeptChange {
  readonly key: string
  readonly late: LateChange
}

/** Returns the changes that are too many; the given ones are the oldest first. */
function beyondBounds(kept: readonly KeptChange[]): KeptChange[] {
  const sender = kept.at(-1)?.late.sender
  const own = kept.filter(({ late }) => late.sender === sender)
  const ofSender = own.slice(0, Math.max(0, own.length - CHANGES_OF_SENDER_MAX))
  const left = kept.filter((one) => !ofSender.includes(one))
  const lowestFirst = left.toSorted((one, other) => STANDINGS.indexOf(other.late.standing) - STANDINGS.indexOf(one.late.standing))
  return [...ofSender, ...lowestFirst.slice(0, Math.max(0, left.length - CHANGES_MAX))]
}

/** Whether nobody vouches for the text of a message, which is all that a change keeps of it. */
const isUnproven = ({ quotedFrom, unverified }: Inbound): boolean => quotedFrom !== undefined || unverified === true

/** Returns the names of the files of an edit, none for the files that its message has already. */
function otherFiles(before: Inbound, { attachments = [], changes }: Inbound): string[] {
  if (changes?.only === 'text') return []
  const known = before.attachments ?? []
  return attachments
    .filter((file) => !known.some((one) => isSameFile(one, file)))
    .slice(0, FILES_MAX)
    .map(({ name }) => shortened(name, FILE_NAME_CHARS_MAX))
}

/** Messages of earlier releases are stored without lasting ids. */
const isSameFile = (one: Attachment, other: Attachment): boolean =>
  (one.lastingId !== undefined && one.lastingId === other.lastingId) || JSON.stringify(one.source) === JSON.stringify(other.source)

/** The turn that reads the changes, and its person. */
export interface Reader {
  readonly channel: string
  readonly sender: string
  readonly standing: Standing
  readonly turnId: string
  /** Whether the turn goes on from a checkpoint. It then reads no new text, and keeps the changes that it has. */
  readonly isResumed: boolean
}

/** The changes that the next turn of a session reads about. */
export interface LateChanges {
  /** Empty without changes, else sentences that end with an empty line. */
  readonly text: string
  /** Call it when the turn has ended. After a crash before it, the next turn does not repeat the text. */
  told(): Promise<void>
}

/** Gives a turn the changes that no turn has read about. */
export async function lateChanges(owned: OwnedStore, session: string, reader: Reader): Promise<LateChanges> {
  const keys = owned.keyValue(OWNER)
  const own: KeptChange[] = []
  for (const { key, value } of await keys.list(keysOf(session), CHANGES_MAX)) {
    const found = v.parse(lateChangeSchema, value)
    const late = { ...found, turn: reader.turnId }
    const other = found.turn === undefined || found.turn === reader.turnId ? undefined : await owned.turns.get(found.turn)
    if (found.turn === reader.turnId) own.push({ key, late })
    else if (other?.status === 'done') await keys.swap(key, value, undefined)
    // A turn that a crash has interrupted goes on with its changes, although another person's turn may run before it.
    else if (other?.endedAtMs === null) continue
    else if (!reader.isResumed && (await keys.swap(key, value, late))) own.push({ key, late })
  }
  return {
    text: own.length === 0 ? '' : `${own.map(({ late }) => toldTo(reader, late)).join('\n')}\n\n`,
    async told() {
      // A change that was replaced meanwhile waits for the next turn.
      for (const { key, late } of own) await keys.swap(key, late, undefined)
    },
  }
}

/** Forgets the changes of a session that were reported before the message with this number; a release before kept no numbers of reports. */
export async function endLateChanges(owned: OwnedStore, session: string, before: number): Promise<void> {
  const keys = owned.keyValue(OWNER)
  for (const { key, value } of await keys.list(keysOf(session), LISTED_MAX))
    if ((v.parse(lateChangeSchema, value).reported ?? 0) < before) await keys.swap(key, value, undefined)
}

/** As with messages, the words of strangers are framed, and so are the words of people of a lower standing than the reader. */
function toldTo(reader: Reader, late: LateChange): string {
  const { sender, standing } = late
  const sentence = sentenceOf(reader, late)
  return isVouchedFor(standing, reader.standing) ? sentence : frameUntrusted(sourceOfMessage(reader.channel, sender), sentence)
}

function sentenceOf(reader: Reader, { what, sender, name, before, text, files }: LateChange): string {
  const isOwn = sender === reader.sender
  const who = isOwn ? 'The sender' : JSON.stringify(oneLine(name === undefined ? sender : `${name} (${sender})`, NAME_CHARS_MAX))
  const began = `which began: ${JSON.stringify(before)}`
  // A moderator may delete the messages of others.
  if (what === 'deleted')
    return isOwn ? `(${who} deleted an earlier message, ${began})` : `(An earlier message of ${who} was deleted, ${began})`
  const shown = files ? ` It now has other files, which you have not seen; ask for them if you need them: ${JSON.stringify(files)}` : ''
  const words = shortened(text, isOwn ? TEXT_CHARS_MAX : OTHERS_CHARS_MAX)
  return `(${who} edited an earlier message, ${began} It now reads: ${JSON.stringify(words)}${shown})`
}

const keysOf = (session: string): string => `${sessionKeys(session)}change:`
/** Numbers that sort as texts. */
const padded = (number: number): string => String(number).padStart(16, '0')
const shortened = (text: string, max: number): string => (text.length <= max ? text : `${text.slice(0, max).toWellFormed()}…`)
