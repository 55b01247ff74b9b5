/**
 * What a power cut leaves on the disk. Certain is what a sync covered: of a file its content, of the folder its entries.
 * Every later change is there or not, each for itself, and a write may be torn between any two sectors. A sync that failed
 * decides for good: what it lost, no later one brings back.
 */
import { FileContent } from './file-content.ts'
import type { Random } from './random.ts'
import { type Call, FOLDER } from './trace.ts'

const SECTOR_BYTES = 512

export interface PowerCut {
  /** So many calls were made before. */
  readonly after: number
  /** How likely a change that no sync covered is on the disk, from 0 to 1. */
  readonly survival: number
  readonly random: Random
}

type Entries = Map<string, TracedFile>

interface TracedFile {
  readonly content: FileContent
  /** Since the last sync. */
  unsynced: Call[]
}

/** The files by name. */
export function diskStateAt(calls: readonly Call[], { after, survival, random }: PowerCut): Map<string, Uint8Array> {
  const survives = () => random() < survival
  const present: Entries = new Map()
  const kept: Entries = new Map()
  let unsynced: ((entries: Entries) => void)[] = []

  const changeEntries = (change: (entries: Entries) => void): void => {
    change(present)
    unsynced.push(change)
  }
  const settleEntries = (isKept: () => boolean): void => {
    for (const change of unsynced) if (isKept()) change(kept)
    unsynced = []
  }

  for (const call of calls.slice(0, after)) {
    const file = present.get(call.file)
    const { operation, file: name, failed } = call
    if (operation === 'sync') {
      const isKept = failed ? survives : () => true
      if (name === FOLDER) settleEntries(isKept)
      else if (file) settle(file, isKept)
    } else if (failed) {
      // Nothing was changed.
    } else if (operation === 'create') {
      const created: TracedFile = { content: new FileContent(), unsynced: [] }
      changeEntries((entries) => entries.set(name, created))
    } else if (operation === 'unlink') {
      changeEntries((entries) => entries.delete(name))
    } else if (operation === 'rename') {
      changeEntries((entries) => {
        if (file) entries.set(Buffer.from(call.bytes).toString(), file)
        entries.delete(name)
      })
    } else {
      file?.unsynced.push(call)
    }
  }

  settleEntries(survives)
  return new Map(
    [...kept].map(([name, file]) => {
      settle(file, survives)
      return [name, file.content.bytes]
    }),
  )
}

function settle(file: TracedFile, isKept: () => boolean): void {
  for (const { operation, position, bytes } of file.unsynced) {
    if (operation === 'truncate') {
      if (isKept()) file.content.resize(position)
      continue
    }
    // The new length may have come without the bytes.
    if (isKept()) file.content.grow(position + bytes.length)
    for (let start = 0; start < bytes.length; ) {
      const end = Math.min(bytes.length, start + SECTOR_BYTES - ((position + start) % SECTOR_BYTES))
      if (isKept()) file.content.write(position + start, bytes.subarray(start, end))
      start = end
    }
  }
  file.unsynced = []
}
