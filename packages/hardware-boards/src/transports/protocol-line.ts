/** The line of a board that speaks the line protocol: opened at the first call, closed when idle, opened anew when it was lost. */
import { AppError, type Clock } from '@sluice/sdk'
import type { Port } from '../devices.ts'
import { bitOf, type Capabilities, capabilitiesOf } from '../protocol/answers.ts'
import { createLink, type Link } from '../protocol/link.ts'
import { type BoardLine, SAYS_NOTHING } from './board-line.ts'
import { createLane } from './lane.ts'

/** A port nobody has used for that long is free for other programs. */
export const IDLE_MS = 30_000
/** Between attempts to listen to a board that cannot be opened; twice as long after each. */
const LISTEN_AGAIN_MS = 5000
const LISTEN_AGAIN_MS_MAX = 60_000

export interface ProtocolLineOptions {
  /** The alias, for sentences. */
  readonly name: string
  readonly clock: Clock
  /** Throws `unavailable` when it cannot be opened. */
  readonly open: (signal: AbortSignal) => Promise<Port>
  /** What the board says unasked; must not throw. */
  readonly onSignal: (signal: string, value: unknown) => void
}

export function createProtocolLine({ name, clock, open, onSignal }: ProtocolLineOptions): BoardLine {
  const lane = createLane(name)
  const closing = new AbortController()
  let link: Link | undefined
  let capabilities: Capabilities | undefined
  let usedAtMs = 0
  let wanted = false
  let listening = false

  const opened = async (signal: AbortSignal): Promise<Link> => {
    usedAtMs = clock.monotonicMs()
    if (link && !link.closed) return link
    if (closing.signal.aborted) throw new AppError('unavailable', `${name} is not used any more`)
    const port = await open(AbortSignal.any([signal, closing.signal]))
    capabilities = undefined
    const fresh = createLink({ port, name, clock, onSignal, onClose: () => void (wanted && listen()) })
    link = fresh
    void closeWhenIdle(fresh)
    return fresh
  }
  const isIdle = (): boolean => !wanted && clock.monotonicMs() - usedAtMs >= IDLE_MS
  const closeWhenIdle = async (mine: Link): Promise<void> => {
    while (!mine.closed && !closing.signal.aborted) {
      const leftMs = usedAtMs + IDLE_MS - clock.monotonicMs()
      await clock.sleep(leftMs > 0 ? leftMs : IDLE_MS, closing.signal)
      // Whoever came meanwhile is served first, and uses it.
      if (isIdle()) await lane.run(closing.signal, async () => (isIdle() ? mine.close() : undefined)).catch(() => undefined)
    }
  }
  const drop = async (): Promise<void> => {
    capabilities = undefined
    const before = link
    link = undefined
    await before?.close()
  }
  /** Opens it until it is open, in the background. */
  const listen = async (): Promise<void> => {
    if (listening) return
    listening = true
    for (let pauseMs = LISTEN_AGAIN_MS; wanted && !closing.signal.aborted; pauseMs = Math.min(2 * pauseMs, LISTEN_AGAIN_MS_MAX)) {
      const done = await lane
        .run(closing.signal, () => opened(closing.signal))
        .then(
          () => true,
          () => false,
        )
      if (done) break
      await clock.sleep(pauseMs, closing.signal)
    }
    listening = false
  }

  const ask = async (
    command: string,
    args: Readonly<Record<string, unknown>>,
    repeatable: boolean,
    signal: AbortSignal,
  ): Promise<unknown> => {
    const open = await opened(signal)
    try {
      return await open.request(command, args, { signal, repeatable })
    } finally {
      usedAtMs = clock.monotonicMs()
    }
  }

  return {
    async capabilities(signal) {
      // The common case by far: each pin is looked up in it.
      if (capabilities && link && !link.closed) return capabilities
      return lane.run(signal, async () => {
        await opened(signal)
        if (capabilities) return capabilities
        const known = await ask('capabilities', {}, true, signal).then(
          (result) => capabilitiesOf(name, result),
          (error: unknown) => {
            // It answers, and does not know the question: small firmware has no pins to tell.
            if (error instanceof AppError && error.code === 'upstream') return SAYS_NOTHING
            throw error
          },
        )
        capabilities = known
        return known
      })
    },
    read: (pin, signal) => lane.run(signal, async () => bitOf(name, await ask('gpio_read', { pin }, true, signal))),
    write: (pin, value, signal) =>
      lane.run(signal, async () => {
        await ask('gpio_write', { pin, value }, false, signal)
      }),
    withPort: (signal, work) =>
      lane.run(signal, async () => {
        const held = wanted
        wanted = false
        await drop()
        const port = await open(AbortSignal.any([signal, closing.signal])).catch((error: unknown) => {
          wanted = held
          throw error
        })
        try {
          return await work(port)
        } finally {
          await port.close()
          wanted = held
          if (held) void listen()
        }
      }),
    listen(now) {
      if (wanted === now) return
      wanted = now
      if (now) void listen()
    },
    drop,
    async close() {
      closing.abort()
      wanted = false
      await drop()
    },
  }
}
