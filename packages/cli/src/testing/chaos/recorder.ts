/** Keeps what is seen while a crash run goes on. */
import type { Message, Seen } from './history.ts'

export interface Recorder {
  readonly seen: readonly Seen[]
  readonly messages: ReadonlyMap<string, Message>
  add(message: Message): void
  see(event: Seen): void
  isAsked(mark: string): boolean
  /** Marks grow from here. */
  nextNumber(): number
}

export function createRecorder(): Recorder {
  const seen: Seen[] = []
  const messages = new Map<string, Message>()
  const asked = new Set<string>()
  let number = 0
  return {
    seen,
    messages,
    add: (message) => void messages.set(message.mark, message),
    see(event) {
      seen.push(event)
      if (event.type === 'asked') asked.add(event.mark)
    },
    isAsked: (mark) => asked.has(mark),
    nextNumber: () => ++number,
  }
}
