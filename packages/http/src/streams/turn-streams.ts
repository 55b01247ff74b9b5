/**
 * The frames of the turns that `POST /api/turns` has accepted, while they run: any number of callers may follow a turn, also one that comes
 * back to it. A turn that another process runs, or that a restart has resumed, has no frames; its state is at `/api/turns/:id`.
 */
import type { Agent, TurnPart } from '@sluice/agent'
import { frameOf } from './chat.ts'
import type { ChatFrame } from './chat-frames.ts'

/** The characters of one turn that are kept for a caller that follows it late. For a longer turn, such a caller gets a `gap` and then the end. */
export const KEPT_CHARS_MAX = 524_288
/** The characters that are kept of all turns together. Beyond them, the turns with the most characters lose their beginnings. */
export const ALL_KEPT_CHARS_MAX = 16_777_216
/** The turns whose frames are kept at once; a further one has none. */
export const TURNS_MAX = 1000
/** Pieces of one text are kept as frames of about this length, so that a long text loses its beginning alone. */
const JOINED_CHARS_MAX = 16_384

type Listener = (frame: ChatFrame) => void

class TurnStream {
  readonly #listeners = new Set<Listener>()
  readonly #frames: ChatFrame[] = []
  #hasGap = false
  /** The characters of its frames. */
  chars = 0

  push(frame: ChatFrame): void {
    this.#keep(frame)
    for (const listener of this.#listeners) listener(frame)
  }

  /** Calls `listener` with the frames so far and each later one, until the returned function is called. */
  follow(listener: Listener): () => void {
    if (this.#hasGap) listener({ type: 'gap' })
    for (const frame of this.#frames) listener(frame)
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Drops its first frame. */
  drop(): void {
    const first = this.#frames.shift()
    if (!first) return
    this.chars -= charsOf(first)
    this.#hasGap = true
  }

  #keep(frame: ChatFrame): void {
    const last = this.#frames.at(-1)
    const isPiece = (frame.type === 'chunk' || frame.type === 'thinking') && last?.type === frame.type
    if (isPiece && last.content.length < JOINED_CHARS_MAX)
      this.#frames[this.#frames.length - 1] = { ...frame, content: last.content + frame.content }
    else this.#frames.push(frame)
    this.chars += charsOf(frame)
    while (this.chars > KEPT_CHARS_MAX) this.drop()
  }
}

const charsOf = (frame: ChatFrame): number => ('content' in frame ? frame.content.length : JSON.stringify(frame).length)

export class TurnStreams {
  readonly #streams = new Map<string, TurnStream>()
  /** The characters of all streams. */
  #chars = 0

  /** Returns the listener of a turn that begins. Its frames are kept from when `runs` is called with its id until it has ended. */
  open(agent: Pick<Agent, 'ended'>): { readonly listen: (part: TurnPart) => void; readonly runs: (id: string) => void } {
    let stream: TurnStream | undefined = new TurnStream()
    let isCounted = false
    return {
      listen: (part) => {
        if (!stream) return
        const before = stream.chars
        stream.push(frameOf(part))
        if (isCounted) this.#count(stream.chars - before)
      },
      runs: (id) => {
        const opened = stream
        if (!opened || this.#streams.size >= TURNS_MAX) {
          stream = undefined
          return
        }
        this.#streams.set(id, opened)
        isCounted = true
        this.#count(opened.chars)
        void agent.ended(id).finally(() => {
          this.#streams.delete(id)
          this.#chars -= opened.chars
          stream = undefined
        })
      },
    }
  }

  #count(more: number): void {
    this.#chars += more
    while (this.#chars > ALL_KEPT_CHARS_MAX) {
      const longest = [...this.#streams.values()].reduce((a, b) => (b.chars > a.chars ? b : a))
      const before = longest.chars
      longest.drop()
      this.#chars -= before - longest.chars
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
