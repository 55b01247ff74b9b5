/**
 * Whose a file of the workspace is. The attachments of messages are below `attachments/<owner>/`, and files of one conversation below
 * `results/<session>/`; every other file is shared by all callers of the agent (docs/agents.md#files-of-people).
 */

import { sha256Hex } from '../values/hmac.ts'
import { parseAgentKey, parseChatSession, roomOwner, senderKey } from '../values/session-key.ts'
import { ATTACHMENTS } from './attachments.ts'

const RESULTS = 'results'

/** A longer name of a folder is replaced by its hash; file systems take 255 bytes. */
const FOLDER_CHARS_MAX = 120

const SESSION_FOLDER = /_(?:2f|3a)|^__/

/** Whether a folder below `results/` is that of a session, whose key always contains a slash or a colon. Other folders there are ordinary ones. */
export const isSessionFolder = (name: string): boolean => SESSION_FOLDER.test(name)

/** The name of an attachment that an earlier release saved. */
const FORMER_NAME = /^[0-9a-f]{16}\.[a-z0-9]{1,8}$/

/** Returns the key whose results a turn writes and opens: its session, else the turn itself. */
export const resultsKey = (session: string | null, turn: string): string => session ?? `turn:${turn}`

/** Returns the path of the folder with the results of a turn. */
export const resultsFolder = (session: string | null, turn: string): string => `${RESULTS}/${ownerFolder(resultsKey(session, turn))}`

/** The person whose files a call opens. */
export interface FileCaller {
  /** As `fileOwner` returns it. */
  readonly owner: string
  /** As `resultsKey` returns it. Null: the caller opens no results. */
  readonly session: string | null
  readonly isOperator: boolean
  /** Whether the conversation names the attachment at a path. Absent: all attachments of the owner are open. */
  readonly names?: ((path: string) => boolean) | undefined
}

/**
 * Returns the folder name of an owner or a session. Two keys never share one, also where the file system ignores case: each byte other
 * than a-z, 0-9 and the hyphen becomes `_` and two digits, and a long key becomes `__` and its SHA-256.
 */
export function ownerFolder(key: string): string {
  const name = Buffer.from(key.toWellFormed())
    .toString('latin1')
    .replace(/[^a-z0-9-]/g, escaped)
  return name.length <= FOLDER_CHARS_MAX && name !== '' ? name : `__${sha256Hex(key)}`
}

const escaped = (byte: string): string => `_${byte.charCodeAt(0).toString(16).padStart(2, '0')}`

/** The owner of the files of all callers on this machine: callers without a device, and the command line. */
const LOCAL = 'local'

/** Returns the owner of the files of a stored session: the caller of its turns (`device:<id>`, `local`, or a sender of a channel), or its room. */
export function fileOwnerOfSession(session: string): string {
  const chat = parseChatSession(session)
  if (chat) return chat.sender === undefined ? roomOwner(chat) : senderKey(chat.channel, { account: chat.account, sender: chat.sender })
  const { key } = parseAgentKey(session)
  const end = key.indexOf('/')
  if (end < 0) return key
  const owner = key.slice(0, end)
  return owner === LOCAL ? owner : `device:${owner}`
}

/** Returns the owner of the files of a turn: that of its session, or its caller, whose agent does not count, where no person has the session. */
export function fileOwner(session: string | null, caller: string | undefined): string {
  if (session !== null && (caller === undefined || parseAgentKey(session).key.includes('/'))) return fileOwnerOfSession(session)
  if (caller === undefined) return LOCAL
  const { key } = parseAgentKey(caller)
  return key === 'cli' ? LOCAL : key
}

/** A file of the data directory that was received piece by piece. Saving it as an attachment moves it. */
export interface ReceivedFile {
  /** The absolute path. */
  readonly path: string
  readonly length: number
  /** The SHA-256 of its bytes, in hexadecimal digits. */
  readonly sha256: string
}

/** Returns the path of an attachment, named by its whole content, so that it never means another file. */
export const attachmentPath = (owner: string, bytes: Uint8Array | ReceivedFile, extension: string): string =>
  `${ATTACHMENTS}/${ownerFolder(owner)}/${'sha256' in bytes ? bytes.sha256 : sha256Hex(bytes)}.${extension}`

/** A place of a file with an owner: a root and the names below it. `former` has the attachments of earlier releases without an owner. */
export interface OwnedPlace {
  readonly root: 'attachments' | 'results' | 'former'
  readonly names: readonly string[]
}

/**
 * The meaning of a path for a caller: `shared` by all callers, `folder`, which holds the files of all owners, or a file or folder with an
 * owner: it lies at the first of `places` that exists. Without any place it belongs to others. No tool changes a file where
 * `isReadOnly`.
 */
export type FileClaim =
  | { readonly kind: 'shared' }
  | { readonly kind: 'folder' }
  | { readonly kind: 'owned'; readonly places: readonly OwnedPlace[]; readonly isReadOnly: boolean }

/** Judges a path by its text. `names` lead from the workspace down to the file; none of them is `.` or `..`. No caller: the daemon itself. */
export function fileClaim(names: readonly string[], caller: FileCaller | undefined): FileClaim {
  const [first, folder, ...rest] = names
  if (first === RESULTS && folder !== undefined && isSessionFolder(folder)) {
    const isOwn = caller === undefined || (caller.session !== null && folder === ownerFolder(caller.session))
    return { kind: 'owned', places: isOwn ? [{ root: 'results', names: [folder, ...rest] }] : [], isReadOnly: false }
  }
  if (first !== ATTACHMENTS) return { kind: 'shared' }
  if (folder === undefined) return { kind: 'folder' }
  const below = [folder, ...rest]
  const attachments = (...inside: string[]): OwnedPlace => ({ root: 'attachments', names: inside })
  const former: OwnedPlace = { root: 'former', names: below }
  if (caller === undefined) return { kind: 'owned', places: [attachments(...below), former], isReadOnly: false }
  if (caller.names && !caller.names(names.join('/'))) return { kind: 'owned', places: [], isReadOnly: true }
  const own = ownerFolder(caller.owner)
  if (folder === own) return { kind: 'owned', places: [attachments(...below)], isReadOnly: true }
  const copy = rest.length === 0 && isFormerAttachment(folder) ? [attachments(own, folder)] : []
  return { kind: 'owned', places: [...copy, ...(caller.isOperator ? [former] : [])], isReadOnly: true }
}

/** Tells whether a file in `attachments` has the name of an attachment that an earlier release saved. */
export const isFormerAttachment = (name: string): boolean => FORMER_NAME.test(name)
