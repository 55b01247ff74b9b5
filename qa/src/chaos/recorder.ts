/** Records the events and messages of a crash run. */
import type { Message, Seen } from './history.ts'

export interface Recorder {
  readonly seen: readonly Seen[]
  readonly messages: ReadonlyMap<string, Message>
  add(message: Message): void
  see(event: Seen): void
  isAsked(mark: string): boolean
  /** The number of messages that the model was not asked about. The answers to questions, about which it never is, do not count. */
  readonly unasked: number
  /** How often the daemon has been killed. */
  readonly kills: number
  /** The number of the next mark. */
  nextNumber(): number
}

export function createRecorder(): Recorder {
  const seen: Seen[] = []
  const messages = new Map<string, Message>()
  const asked = new Set<string>()
  let unasked = 0
  let kills = 0
  let number = 0
  return {
    seen,
    messages,
    add(message) {
      messages.set(message.mark, message)
      if (!message.answers) unasked += 1
    },
    see(event) {
      seen.push(event)
      if (event.type === 'asked' && !asked.has(event.mark)) {
        asked.add(event.mark)
        if (!messages.get(event.mark)?.answers) unasked -= 1
      }
      if (event.type === 'ended' && event.by === 'SIGKILL') kills += 1
    },
    isAsked: (mark) => asked.has(mark),
    get unasked() {
      return unasked
    },
    get kills() {
      return kills
    },
    nextNumber: () => ++number,
  }
}
