/** A conversation with a GDB server: one request, one reply, acknowledged or not, and nothing a server sends can fill memory. */
import type { Socket } from 'node:net'
import { AppError, errorText } from '@sluice/sdk'
import { createFrames, type Frame, frameOf } from './frames.ts'

/** Of one packet, either way. */
const REPEATS_MAX = 3
/** From a request to its reply: what else may come in between. */
const STRAY_FRAMES_MAX = 64
const REPLY_BYTES_MAX = 65_536

/** Or that there is nothing to tell. */
const STOP_REPLY = /^(?:[STWX][0-9a-fA-F]{2}|E[0-9a-fA-F]{2}$|OK$|N$|$)/
/** What the program on the chip prints. */
const CONSOLE_OUTPUT = /^O(?:[0-9a-fA-F]{2})+$/
const NOTHING = /(?!)/
const INTERRUPT = Uint8Array.of(3)

export interface GdbLink {
  /**
   * Sends a packet and gives the first reply that fits; others are passed over. Throws `upstream` for what breaks the
   * protocol, `unavailable` when the server leaves, and the signal's reason; the link can only be closed then.
   */
  ask(packet: string, fits: RegExp): Promise<string>
  /** As `ask`, for a halted target's report; `interrupt` is the byte that halts one that runs. */
  askStop(how: '?' | 'interrupt'): Promise<string>
  /** Both sides trust the connection from now on. */
  withoutAcks(): void
  /** Lets the target run, which any further byte may end; resolves when the server has it. */
  run(): Promise<void>
  /** It was halted before: it never runs by this link. */
  keepHalted(): void
  /** Says good-bye: resolves when the server has left too, and so has done all it was told. */
  end(): Promise<void>
  /** Leaves, and lets the target run where nobody has yet; idempotent. */
  close(): void
}

interface Waiting {
  readonly fits: RegExp
  readonly sent: Uint8Array
  readonly resolve: (body: string) => void
  readonly reject: (error: unknown) => void
  /** Resolves with an acknowledgement; there is no other answer. */
  readonly isTold?: true
}

/** Takes the connection over. `signal` aborts with an `AppError`. */
export function createGdbLink(socket: Socket, name: string, signal: AbortSignal): GdbLink {
  const frames = createFrames()
  let hasAcks = true
  let isRunning = false
  let staysHalted = false
  let failure: unknown
  let waiting: Waiting | undefined
  let [repeats, strays, bytesIn] = [0, 0, 0]

  const fail = (error: unknown): void => {
    failure ??= error
    waiting?.reject(failure)
    waiting = undefined
    socket.pause()
  }
  const broken = (what: string): void => fail(new AppError('upstream', `${name} ${what}`))

  const repeat = (bytes: Uint8Array): void => {
    if (!hasAcks || ++repeats > REPEATS_MAX) broken('spoils what is sent')
    else socket.write(bytes)
  }

  const take = (frame: Frame): void => {
    if (isRunning && frame.kind !== 'ack' && frame.kind !== 'nak') return
    if (frame.kind === 'ack') {
      if (waiting?.isTold) waiting.resolve('')
    } else if (frame.kind === 'nak') {
      if (waiting) repeat(waiting.sent)
    } else if (frame.kind === 'spoiled') repeat(Buffer.from('-'))
    else if (frame.kind === 'packet') takePacket(frame.body)
  }

  const takePacket = (body: string): void => {
    if (hasAcks) socket.write('+')
    if (waiting?.fits.test(body) && !CONSOLE_OUTPUT.test(body)) waiting.resolve(body)
    else if (++strays > STRAY_FRAMES_MAX) broken('gives no answer to what it is asked')
  }

  const onData = (bytes: Uint8Array): void => {
    bytesIn += bytes.length
    try {
      if (bytesIn > REPLY_BYTES_MAX) throw new RangeError('it sends without an end')
      for (const frame of frames(bytes)) if (failure === undefined) take(frame)
    } catch (error) {
      broken(`breaks the GDB protocol: ${errorText(error)}`)
    }
  }

  const onAbort = (): void => fail(signal.reason)
  socket.on('data', onData)
  socket.on('error', (cause) => fail(new AppError('unavailable', `The connection to ${name} broke: ${cause.message}`, { cause })))
  socket.on('close', () => fail(new AppError('unavailable', `${name} ended the connection`)))
  signal.addEventListener('abort', onAbort, { once: true })

  const exchange = async (sent: Uint8Array, how: Pick<Waiting, 'fits' | 'isTold'>): Promise<string> => {
    if (failure !== undefined) throw failure
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    ;[repeats, strays, bytesIn] = [0, 0, 0]
    waiting = { ...how, sent, resolve, reject }
    socket.write(sent)
    try {
      return await promise
    } finally {
      waiting = undefined
    }
  }

  return {
    ask: (packet, fits) => exchange(frameOf(packet), { fits }),
    askStop(how) {
      isRunning = false
      return exchange(how === '?' ? frameOf('?') : INTERRUPT, { fits: STOP_REPLY })
    },
    withoutAcks() {
      hasAcks = false
    },
    async run() {
      if (failure !== undefined) throw failure
      if (staysHalted) return
      isRunning = true
      if (hasAcks) await exchange(frameOf('c'), { fits: NOTHING, isTold: true })
      else socket.write(frameOf('c'))
    },
    keepHalted() {
      staysHalted = true
    },
    async end() {
      if (failure !== undefined) throw failure
      const { promise, resolve } = Promise.withResolvers<void>()
      socket.once('close', resolve).end()
      await promise
    },
    close() {
      signal.removeEventListener('abort', onAbort)
      failure ??= new AppError('unavailable', `The connection to ${name} is closed`)
      if (!isRunning && !staysHalted && socket.writable) socket.write(frameOf('c'))
      isRunning = true
      socket.destroySoon()
    },
  }
}
