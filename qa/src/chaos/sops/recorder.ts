/** Records the events of a crash run of procedures. */
import type { PostedEvent, Seen } from './history.ts'

export interface SopsRecorder {
  readonly seen: readonly Seen[]
  readonly events: readonly PostedEvent[]
  see(event: Seen): void
  add(event: PostedEvent): void
  /** The number of the next tag or mark. */
  nextNumber(): string
}

const DIGITS = 6

export function createSopsRecorder(): SopsRecorder {
  const seen: Seen[] = []
  const events: PostedEvent[] = []
  let number = 0
  return {
    seen,
    events,
    see: (event) => void seen.push(event),
    add: (event) => void events.push(event),
    nextNumber: () => String(++number).padStart(DIGITS, '0'),
  }
}
