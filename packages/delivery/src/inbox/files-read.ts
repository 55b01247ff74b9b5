/**
 * The lines that stand for the files of a message. They are kept with the message, so that a later attempt neither fetches nor transcribes
 * a file again, and its turn reads the same words.
 */
import type { Attachment, Clock, Inbound, OwnedStore, StartedMessage, Workspace } from '@sluice/sdk'

/** A file whose reading failed is read again after this time, and then each time when twice the time since the receipt has passed. */
const AGAIN_MS_MIN = 60_000

/** The line of a file. */
export interface FileLine {
  readonly line: string
  /** Where it was saved in the workspace; absent for a recording that became words. */
  readonly path?: string
  /** True when it was not fetched, not saved, or not transcribed although it is a recording. */
  readonly isFailed?: true
}

export interface FilesRead {
  /** Resolves to the line of a file that was read before; to undefined when the file should be read now. */
  lineOf(file: Attachment): Promise<string | undefined>
  /** Keeps the line of a file that was read now. */
  keep(file: Attachment, read: FileLine): Promise<void>
}

/** Returns what earlier attempts of a message have read. */
export function filesReadOf(
  owned: Pick<OwnedStore, 'inbox'>,
  { number, turnId, message, sinceMs }: Pick<StartedMessage, 'number' | 'turnId' | 'message' | 'sinceMs'>,
  { clock, workspace }: { readonly clock: Pick<Clock, 'nowMs'>; readonly workspace: Pick<Workspace, 'open'> },
): FilesRead {
  let read: NonNullable<Inbound['filesRead']> = message.filesRead ?? {}
  return {
    async lineOf(file) {
      const known = read[keyOf(file)]
      if (known?.path !== undefined && !(await isThere(workspace, known.path))) return undefined
      if (known?.failedAtMs === undefined) return known?.line
      const passedMs = Math.abs(clock.nowMs() - known.failedAtMs)
      return passedMs < Math.max(AGAIN_MS_MIN, known.failedAtMs - sinceMs) ? known.line : undefined
    },
    async keep(file, { line, path, isFailed }) {
      read = { ...read, [keyOf(file)]: { line, ...(path !== undefined && { path }), ...(isFailed && { failedAtMs: clock.nowMs() }) } }
      await owned.inbox.keepRead(number, turnId, { ...message, filesRead: read })
    },
  }
}

/** The files of a message that was given up are deleted after a day, because no conversation names them; it may be replayed after that. */
async function isThere(workspace: Pick<Workspace, 'open'>, path: string): Promise<boolean> {
  try {
    await using _ = await workspace.open(path, { bytesMax: Number.MAX_SAFE_INTEGER })
    return true
  } catch {
    return false
  }
}

const keyOf = ({ lastingId, source }: Attachment): string => lastingId ?? JSON.stringify(source)
