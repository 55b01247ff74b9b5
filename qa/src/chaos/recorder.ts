/** Records the events and messages of a crash run. */
import type { Message, Seen } from './history.ts'

export interface Recorder {
  readonly seen: readonly Seen[]
  readonly messages: ReadonlyMap<string, Message>
  add(message: Message): void
  see(event: Seen): void
  isAsked(mark: string): boolean
  /** How often the daemon has been killed. */
  readonly kills: number
  /** The number of the next mark. */
  nextNumber(): number
}

export function createRecorder(): Recorder {
  const seen: Seen[] = []
  const messages = new Map<string, Message>()
  const asked = new Set<string>()
  let kills = 0
  let number = 0
  return {
    seen,
    messages,
    add: (message) => void messages.set(message.mark, message),
    see(event) {
      seen.push(event)
      if (event.type === 'asked') asked.add(event.mark)
      if (event.type === 'ended' && event.by === 'SIGKILL') kills += 1
    },
    isAsked: (mark) => asked.has(mark),
    get kills() {
      return kills
    },
    nextNumber: () => ++number,
  }
}
