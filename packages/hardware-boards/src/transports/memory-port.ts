/** A line in memory with two ends. Bytes written to one end arrive at the other in a later tick, as on a real line. */
import type { Port } from '../devices.ts'

export interface MemoryLine {
  readonly near: Port
  readonly far: Port
}

interface End {
  readonly readers: Set<(bytes: Uint8Array) => void>
  readonly closers: Set<() => void>
}

export function memoryPort(): MemoryLine {
  const ends: readonly [End, End] = [emptyEnd(), emptyEnd()]
  let isClosed = false
  const close = async (): Promise<void> => {
    if (isClosed) return
    isClosed = true
    for (const { closers } of ends) for (const closer of closers) closer()
  }
  const portOf = (mine: End, other: End): Port => ({
    async write(bytes) {
      if (isClosed) throw new Error('The line is closed')
      const copy = Buffer.from(bytes)
      setImmediate(() => {
        if (!isClosed) for (const reader of other.readers) reader(copy)
      })
    },
    onData: (callback) => added(mine.readers, callback),
    onClose(callback) {
      if (isClosed) queueMicrotask(callback)
      return added(mine.closers, callback)
    },
    signals: async () => undefined,
    close,
  })
  const [a, b] = ends
  return { near: portOf(a, b), far: portOf(b, a) }
}

const emptyEnd = (): End => ({ readers: new Set(), closers: new Set() })

const added = <Member>(set: Set<Member>, member: Member): (() => void) => {
  set.add(member)
  return () => void set.delete(member)
}
