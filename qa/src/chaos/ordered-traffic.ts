/** Writes messages at fixed times and delivers the messages of each sender one after the other, like a platform that waits for answers. */
import type { History, Message } from './history.ts'
import type { Kind } from './kind.ts'
import { markOf } from './marks.ts'
import type { Recorder } from './recorder.ts'
import { pause, post } from './request.ts'

const RETRY_MS = 250
const ACKNOWLEDGED = [200, 202]

export interface Written {
  readonly message: Message
  /** The part of the run in which it was written. */
  readonly phase: string
  readonly atMs: number
}

export interface WriteOptions {
  readonly phase: string
  /** The number of the message: senders take turns. */
  readonly number: number
  /** Returns the URL of the daemon, or undefined while none listens. */
  url(): string | undefined
}

export class OrderedTraffic {
  readonly #recorder: Recorder
  readonly #signal: AbortSignal
  /** The deliveries of each sender that have not ended. */
  readonly #lanes = new Map<string, Promise<void>>()
  readonly written: Written[] = []
  /** The marks of the messages that the daemon or the platform must not lose any more. */
  readonly acknowledged = new Set<string>()
  /** The attempts of platforms that failed or were refused. */
  failed = 0

  constructor(recorder: Recorder, signal: AbortSignal) {
    this.#recorder = recorder
    this.#signal = signal
  }

  /** Writes the message and begins to deliver it. A message that the platform keeps counts as acknowledged from now on. */
  write(kind: Kind, { phase, number, url }: WriteOptions): Message {
    const sender = kind.senders[number % kind.senders.length] ?? kind.senders[0]
    const mark = markOf(this.#recorder.nextNumber())
    const message = kind.write({ mark, sender, parts: 1, usesTool: false })
    this.#recorder.add(message)
    if (kind.isPulled) this.acknowledged.add(mark)
    this.written.push({ message, phase, atMs: Date.now() })
    const lane = `${kind.name} ${sender}`
    if (kind.request)
      this.#lanes.set(
        lane,
        (this.#lanes.get(lane) ?? Promise.resolve()).then(() => this.#deliver(kind, message, url)),
      )
    return message
  }

  /** Resolves once everything that was written before the call is acknowledged. */
  async delivered(): Promise<void> {
    await Promise.all(this.#lanes.values())
  }

  async #deliver(kind: Kind, message: Message, url: WriteOptions['url']): Promise<void> {
    const marks = [message.mark]
    while (!this.#signal.aborted) {
      const [request, to] = [kind.request?.([message]), url()]
      if (!request) return
      if (to === undefined) {
        await pause(RETRY_MS, this.#signal)
        continue
      }
      this.#recorder.see({ type: 'posted', marks })
      const { status } = await post(to, request, this.#signal)
      if (status !== undefined && ACKNOWLEDGED.includes(status)) {
        this.acknowledged.add(message.mark)
        if (!kind.isPulled) this.#recorder.see({ type: 'acked', marks })
        return
      }
      this.failed += 1
      if (status !== undefined && status < 500) return this.#recorder.see({ type: 'refused', marks, status })
      await pause(RETRY_MS, this.#signal)
    }
  }
}

/** What counts as acknowledged for messages of a kind. */
export function meaningOfAcknowledged({ isPulled, request }: Pick<Kind, 'isPulled' | 'request'>): string {
  if (!isPulled) return 'the daemon answered the request with 200 or 202'
  return request ? 'the platform has the message; requests announce it' : 'the platform has the message'
}

/** The number of messages that began before a message which the same sender had written earlier. */
export function countOutOfOrder(written: readonly Written[], { seen }: Pick<History, 'seen'>): number {
  const begun = new Map<string, number>()
  for (const [position, event] of seen.entries()) if (event.type === 'asked' && !begun.has(event.mark)) begun.set(event.mark, position)
  let count = 0
  for (const lane of Map.groupBy(written, ({ message }) => message.sender).values()) {
    const positions = lane.flatMap(({ message }) => begun.get(message.mark) ?? [])
    count += positions.filter((position, index) => position < (positions[index - 1] ?? 0)).length
  }
  return count
}
