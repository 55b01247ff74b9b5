/**
 * The frames of the turns that `POST /api/turns` has accepted, while they run: any number of callers may follow a turn, also one that comes
 * back to it. A turn that another process runs, or that a restart has resumed, has no frames; its state is at `/api/turns/:id`.
 */
import type { Agent, TurnPart } from '@sluice/agent'
import { frameOf } from './chat.ts'
import type { ChatFrame } from './chat-frames.ts'

/** The characters of one turn that are kept for a caller that comes later. Of a longer one it gets the end, and the whole answer with the state of the turn. */
export const KEPT_CHARS_MAX = 524_288
/** The turns whose frames are kept at once; a further one has none. */
export const TURNS_MAX = 1000

type Listener = (frame: ChatFrame) => void

class TurnStream {
  readonly #listeners = new Set<Listener>()
  #frames: ChatFrame[] = []
  #chars = 0

  push(frame: ChatFrame): void {
    this.#keep(frame)
    for (const listener of this.#listeners) listener(frame)
  }

  /** Calls `listener` with the frames so far and each later one, until the returned function is called. */
  follow(listener: Listener): () => void {
    for (const frame of this.#frames) listener(frame)
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Pieces of one text are kept as one frame. */
  #keep(frame: ChatFrame): void {
    const last = this.#frames.at(-1)
    if ((frame.type === 'chunk' || frame.type === 'thinking') && last?.type === frame.type)
      this.#frames[this.#frames.length - 1] = { ...frame, content: last.content + frame.content }
    else this.#frames.push(frame)
    this.#chars += 'content' in frame ? frame.content.length : JSON.stringify(frame).length
    if (this.#chars <= KEPT_CHARS_MAX) return
    this.#frames = []
    this.#chars = 0
  }
}

export class TurnStreams {
  readonly #streams = new Map<string, TurnStream>()

  /** Returns the listener of a turn that begins. Its frames are kept from when `runs` is called with its id until it has ended. */
  open(agent: Pick<Agent, 'ended'>): { readonly listen: (part: TurnPart) => void; readonly runs: (id: string) => void } {
    const stream = new TurnStream()
    return {
      listen: (part) => stream.push(frameOf(part)),
      runs: (id) => {
        if (this.#streams.size >= TURNS_MAX) return
        this.#streams.set(id, stream)
        void agent.ended(id).finally(() => this.#streams.delete(id))
      },
    }
  }

  /** Sends the frames of a turn until it has ended or `signal` aborts. Resolves to false for a turn without frames. */
  async follow(id: string, agent: Pick<Agent, 'ended'>, send: Listener, signal: AbortSignal): Promise<boolean> {
    const stream = this.#streams.get(id)
    if (!stream) return false
    const stop = stream.follow(send)
    const left = Promise.withResolvers<void>()
    signal.addEventListener('abort', () => left.resolve(), { once: true })
    await Promise.race([agent.ended(id), left.promise])
    stop()
    return true
  }
}
