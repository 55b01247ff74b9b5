/** A reply to send, and the lane that orders it. */
import type { Address, Button } from './channel.ts'
import type { TextStyle } from './markup.ts'

/** A file of the workspace to attach, read when the message is sent. */
export interface ReplyFile {
  readonly kind: 'image' | 'audio' | 'video' | 'file'
  /** The path relative to the workspace. */
  readonly path: string
  /** Why it is not attached; the message then says so. */
  readonly refusal?: string
}

const KINDS: Readonly<Record<string, ReplyFile['kind']>> = {
  IMAGE: 'image',
  PHOTO: 'image',
  AUDIO: 'audio',
  VOICE: 'audio',
  VIDEO: 'video',
  DOCUMENT: 'file',
  FILE: 'file',
}
/** A path contains no bracket, so that the time is linear in the length of the text, however many markers have no end. */
const MARKER = /\[([a-z]{4,8}):([^[\]\n]{1,1000})\]/gi
/** A marker with an address names no file of the workspace. */
const ADDRESS = /^[a-z][a-z0-9+.-]*:/i

/** Replaces the markers of files, such as `[IMAGE:chart.png]`, in the answer of an agent. `replace` returns undefined for one that stays. */
export function replaceFileMarkers(answer: string, replace: (file: ReplyFile) => string | undefined): string {
  return answer.replace(MARKER, (marker, name: string, inside: string) => {
    const kind = KINDS[name.toUpperCase()]
    const path = inside.trim()
    if (!kind || path === '' || ADDRESS.test(path)) return marker
    return replace({ kind, path }) ?? marker
  })
}

/** The parts of a message other than its text; JSON. */
export interface ReplyExtras {
  /** See `Outbound.styles`. */
  readonly styles?: readonly TextStyle[]
  /** The platform's id of a sent message whose text this one replaces. */
  readonly edits?: string
  /** True to send the message when the other one can no longer be edited. */
  readonly elseSend?: true
  readonly buttons?: readonly Button[]
  readonly topic?: string
  readonly files?: readonly ReplyFile[]
  /** The agent whose workspace has the files; `main` when absent. */
  readonly agent?: string
  /** The session of the turn that attached the files, which decides whose files may be opened. */
  readonly session?: string
  /** When the message that it answers was written, in milliseconds since 1970. Set where the platform limits how long it may be answered. */
  readonly answersAtMs?: number
}

/** One message to send: a reply or a part of a long reply. */
export interface NewReply {
  readonly channel: string
  readonly account: string
  readonly to: Address
  readonly text: string
  /** The part, from 1 to `parts`. */
  readonly part: number
  readonly parts: number
  readonly clientId: string
  readonly turnId: string | null
  readonly createdAtMs: number
  readonly extras?: ReplyExtras
  /** The span of the reply, as `formatTraceContext` writes it. Present while an observer traces. */
  readonly trace?: string
}

/** Returns the lane of a reply: replies to one conversation or thread are sent in order. */
export const replyLane = ({ channel, account, to }: Pick<NewReply, 'channel' | 'account' | 'to'>): string =>
  JSON.stringify([channel, account, to.to, to.thread])

/** Returns the paths of the files that an answer marks. */
export function markedFiles(answer: string): readonly string[] {
  const paths = new Set<string>()
  replaceFileMarkers(answer, ({ path }) => void paths.add(path))
  return [...paths]
}

/** A file that an answer marks, as the end of its turn judged it. */
export interface MarkedFile {
  readonly path: string
  /** Why it is not attached; absent for a file that is. */
  readonly refusal?: string
}
