/** The line of a board that speaks the line protocol: opened at the first call, closed when idle, opened anew when it was lost. */

import { signalScope } from '@sluice/kit'
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

const NOTHING: ReadonlySet<string> = new Set()

/** The pin whose changes a signal tells. */
const pinIn = (signal: string): number[] => (/^pin_\d{1,3}$/.test(signal) ? [Number(signal.slice(4))] : [])

export interface ProtocolLineOptions {
  /** The alias, for sentences. */
  readonly name: string
  readonly clock: Clock
  /** Throws `unavailable` when it cannot be opened. */
  readonly open: (signal: AbortSignal) => Promise<Port>
  /** What the board says unasked; must not throw. */
  readonly onSignal: (signal: string, value: unknown) => void
  /** A pin whose changes are wanted, and which the board does not watch; must not throw. */
  readonly onUnwatched: (pin: number, error: unknown) => void
}

export function createProtocolLine({ name, clock, open, onSignal, onUnwatched }: ProtocolLineOptions): BoardLine {
  const lane = createLane(name)
  const closing = new AbortController()
  let link: Link | undefined
  let capabilities: Capabilities | undefined
  let usedAtMs = 0
  let openedAtMs = 0
  let wanted: ReadonlySet<string> = NOTHING
  /** Pins that the board at the other end of `link` was told to watch, also those it refused. */
  let watched = new Set<number>()
  let listening = false

  const openWhileUsed = async (signal: AbortSignal): Promise<Port> => {
    using either = signalScope([signal, closing.signal])
    return await open(either.signal)
  }
  const opened = async (signal: AbortSignal): Promise<Link> => {
    usedAtMs = clock.monotonicMs()
    if (link && !link.closed) return link
    if (closing.signal.aborted) throw new AppError('unavailable', `${name} is not used any more`)
    const port = await openWhileUsed(signal)
    capabilities = undefined
    watched = new Set()
    openedAtMs = clock.monotonicMs()
    const fresh = createLink({ port, name, clock, onSignal, onClose: () => void listen() })
    link = fresh
    void closeWhenIdle(fresh)
    void listen()
    return fresh
  }
  const isIdle = (): boolean => wanted.size === 0 && clock.monotonicMs() - usedAtMs >= IDLE_MS
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
  /** Those whose changes are wanted and not watched, and those that are watched for nobody. */
  const changes = () => {
    const pins = new Set([...wanted].flatMap(pinIn))
    return { add: [...pins].filter((pin) => !watched.has(pin)), drop: [...watched].filter((pin) => !pins.has(pin)) }
  }
  const isHeard = (): boolean => {
    const isOpen = link !== undefined && !link.closed
    const { add, drop } = changes()
    return isOpen ? add.length + drop.length === 0 : wanted.size === 0
  }
  const tell = async (open: Link, command: 'watch' | 'unwatch', pin: number): Promise<void> => {
    try {
      await open.request(command, { pin }, { signal: closing.signal, repeatable: true })
    } catch (error) {
      if (command === 'watch' && !closing.signal.aborted && !open.closed) onUnwatched(pin, error)
      // Who refuses does so every time; who is silent may answer later.
      if (!(error instanceof AppError) || error.code !== 'upstream') throw error
    }
    if (command === 'watch') watched.add(pin)
    else watched.delete(pin)
  }
  const hear = async (): Promise<void> => {
    if (isHeard()) return
    const open = await opened(closing.signal)
    const { add, drop } = changes()
    for (const pin of drop) await tell(open, 'unwatch', pin)
    for (const pin of add) await tell(open, 'watch', pin)
  }
  /** Until it is open and the board watches what it should, in the background. */
  const listen = async (): Promise<void> => {
    if (listening || isHeard()) return
    listening = true
    // A port that opens and is lost at once would be opened as fast as the machine can.
    if (link?.closed && clock.monotonicMs() - openedAtMs < LISTEN_AGAIN_MS) await clock.sleep(LISTEN_AGAIN_MS, closing.signal)
    for (let pauseMs = LISTEN_AGAIN_MS; !isHeard() && !closing.signal.aborted; pauseMs = Math.min(2 * pauseMs, LISTEN_AGAIN_MS_MAX)) {
      await lane.run(closing.signal, hear).catch(() => undefined)
      if (!isHeard()) await clock.sleep(pauseMs, closing.signal)
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
        await drop()
        try {
          const port = await openWhileUsed(signal)
          try {
            return await work(port)
          } finally {
            await port.close()
          }
        } finally {
          void listen()
        }
      }),
    listen(signals) {
      wanted = signals
      void listen()
    },
    drop,
    async close() {
      closing.abort()
      wanted = NOTHING
      await drop()
    },
  }
}
