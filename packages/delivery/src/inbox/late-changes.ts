/**
 * Edits and deletions of messages whose turn had begun: the next turn of the session is told about them. They are kept with their writer,
 * because in a shared room the next turn may be that of another person.
 */
import {
  frameUntrusted,
  type Inbound,
  isAtLeast,
  type OwnedStore,
  oneLine,
  STANDINGS,
  type Standing,
  sessionKeys,
  sourceOfMessage,
} from '@sluice/sdk'
import * as v from 'valibot'

/** The owner of the keys under which changes wait for the next turn. */
const OWNER = 'delivery'
const TEXT_CHARS_MAX = 4000
const BEFORE_CHARS_MAX = 200
const NAME_CHARS_MAX = 64
/** The most changes that one turn is told about. */
const CHANGES_MAX = 20

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
})
type LateChange = v.InferOutput<typeof lateChangeSchema>

/** A change of a message whose turn had begun. */
export interface ReportedChange {
  /** The number of the report. */
  readonly number: number
  /** The session of the message. */
  readonly session: string
  readonly before: Inbound
  readonly report: Inbound
  readonly what: LateChange['what']
  /** The standing of the writer of the message. */
  readonly standing: Standing
}

/** Keeps a change for the next turn of its session. An edit that keeps the text and the files is nothing to tell. */
export async function keepLateChange(
  owned: OwnedStore,
  { number, session, before, report, what, standing }: ReportedChange,
): Promise<void> {
  const files = otherFiles(before, report)
  if (what === 'edited' && report.text === before.text && files.length === 0) return
  const { sender, name } = before
  const late: LateChange = {
    what,
    sender,
    ...(name !== undefined && { name }),
    standing: isUnproven(before) || isUnproven(report) ? 'unverified' : standing,
    before: shortened(before.text, BEFORE_CHARS_MAX),
    text: shortened(report.text, TEXT_CHARS_MAX),
    ...(files.length > 0 && { files }),
  }
  await owned.keyValue(OWNER).set(`${keysOf(session)}${padded(number)}`, late)
}

/** Whether nobody vouches for the text of a message, which is all that a change keeps of it. */
const isUnproven = ({ quotedFrom, unverified }: Inbound): boolean => quotedFrom !== undefined || unverified === true

/** Returns the names of the files of an edit, none for the files that its message has already. */
function otherFiles(before: Inbound, { attachments = [], changes }: Inbound): string[] {
  if (changes?.only === 'text') return []
  const known = new Set(before.attachments?.map(({ source }) => JSON.stringify(source)))
  return attachments.flatMap(({ name, source }) => (known.has(JSON.stringify(source)) ? [] : [shortened(name, BEFORE_CHARS_MAX)]))
}

/** The person of the turn that is told. */
export interface Reader {
  readonly channel: string
  readonly sender: string
  readonly standing: Standing
}

/** The changes that the next turn of a session is told about. */
export interface LateChanges {
  /** Empty without changes, else sentences that end with an empty line. */
  readonly text: string
  /** Call it when the turn has ended. A crash before it repeats the text in one more turn. */
  told(): Promise<void>
}

export async function lateChanges(owned: OwnedStore, session: string, reader: Reader): Promise<LateChanges> {
  const keys = owned.keyValue(OWNER)
  const found = await keys.list(keysOf(session), CHANGES_MAX)
  const lines = found.map(({ value }) => toldTo(reader, v.parse(lateChangeSchema, value)))
  return {
    text: lines.length === 0 ? '' : `${lines.join('\n')}\n\n`,
    async told() {
      for (const { key } of found) await keys.delete(key)
    },
  }
}

/** As with the messages themselves, the words of strangers are framed, and so are those of people who stand lower than the reader. */
function toldTo(reader: Reader, late: LateChange): string {
  const { sender, standing } = late
  const isVouchedFor = isAtLeast(standing, 'listed') && isAtLeast(standing, reader.standing)
  const sentence = sentenceOf(reader, late)
  return isVouchedFor ? sentence : frameUntrusted(sourceOfMessage(reader.channel, sender), sentence)
}

function sentenceOf(reader: Reader, { what, sender, name, before, text, files }: LateChange): string {
  const isOwn = sender === reader.sender
  const who = isOwn ? 'The sender' : JSON.stringify(oneLine(name === undefined ? sender : `${name} (${sender})`, NAME_CHARS_MAX))
  const began = `which began: ${JSON.stringify(before)}`
  // A moderator may delete the messages of others.
  if (what === 'deleted')
    return isOwn ? `(${who} deleted an earlier message, ${began})` : `(An earlier message of ${who} was deleted, ${began})`
  const shown = files ? ` It now has other files, which you have not seen; ask for them if you need them: ${JSON.stringify(files)}` : ''
  return `(${who} edited an earlier message, ${began} It now reads: ${JSON.stringify(text)}${shown})`
}

const keysOf = (session: string): string => `${sessionKeys(session)}change:`
/** Numbers that sort as texts. */
const padded = (number: number): string => String(number).padStart(16, '0')
const shortened = (text: string, max: number): string => (text.length <= max ? text : `${text.slice(0, max).toWellFormed()}…`)
