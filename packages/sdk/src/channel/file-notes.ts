/** Notes about files in the stored messages of a turn, in `providerOptions`, which providers ignore under a key that is not theirs. */
import type { MarkedFile } from './reply.ts'

const KEY = 'sluice'

/** The files of the workspace that a call used. */
export interface UsedFiles {
  /** The files that it opened or wrote. */
  readonly used?: readonly string[]
  /** For a call with effects: when it began, in milliseconds since 1970. A file that was changed since may be its work. */
  readonly sinceMs?: number
}

/** The notes in the last message of a turn about the files that its answer marks. */
export interface AnswerFiles {
  readonly marked?: readonly MarkedFile[]
}

type Noted = { readonly providerOptions?: Readonly<Record<string, unknown>> | undefined }

/** Returns the member that adds a note to a part or a message of the daemon's own. */
export const fileNote = (note: UsedFiles | AnswerFiles) => ({ providerOptions: { [KEY]: structuredClone(note) as Record<string, never> } })

/** Reads the note of a result of a tool. */
export const usedFilesIn = ({ providerOptions }: Noted): UsedFiles => (providerOptions?.[KEY] ?? {}) as UsedFiles

/** Reads the note of the last message of a turn. */
export const answerFilesIn = ({ providerOptions }: Noted): AnswerFiles => (providerOptions?.[KEY] ?? {}) as AnswerFiles
