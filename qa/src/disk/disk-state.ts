/**
 * Computes what a power cut leaves on the disk. A sync makes the content of a file, or the entries of the folder, certain. Every
 * later change survives or not, independently, and a write may tear between any two sectors. A failed sync decides once: no
 * later sync brings back what it lost.
 */
import { type Call, FOLDER } from './trace.ts'

const SECTOR_BYTES = 512
const FILE_BYTES_MAX = 256 * 1024 * 1024

/** When the power is cut and which unsynced changes survive. */
export interface PowerCut {
  /** The number of calls before the cut. */
  readonly after: number
  /** The probability from 0 to 1 that an unsynced change survives. */
  readonly survival: number
  /** Returns a number from 0 up to 1. */
  readonly random: () => number
}

/** The bytes of one file in memory. */
class FileContent {
  readonly #buffer = new ArrayBuffer(0, { maxByteLength: FILE_BYTES_MAX })
  /** The content; its length follows the file. */
  readonly bytes = new Uint8Array(this.#buffer)

  /** Sets the length; added bytes are zero. */
  resize(length: number): void {
    this.#buffer.resize(length)
  }

  /** Extends the file to at least `length` bytes. */
  grow(length: number): void {
    if (length > this.bytes.length) this.resize(length)
  }

  write(position: number, bytes: Uint8Array): void {
    this.grow(position + bytes.length)
    this.bytes.set(bytes, position)
  }
}

type Entries = Map<string, TracedFile>

interface TracedFile {
  readonly content: FileContent
  /** Calls since the last sync. */
  unsynced: Call[]
}

/** Returns the content of the files by name. */
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
      // A failed call changes nothing.
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
    // The new length may survive without the bytes.
    if (isKept()) file.content.grow(position + bytes.length)
    for (let start = 0; start < bytes.length; ) {
      const end = Math.min(bytes.length, start + SECTOR_BYTES - ((position + start) % SECTOR_BYTES))
      if (isKept()) file.content.write(position + start, bytes.subarray(start, end))
      start = end
    }
  }
  file.unsynced = []
}
