/** One connection of socket mode: envelopes come in, and each is acknowledged once what it brought is durable. */

import { type Members, members, parsedOrUndefined, text } from '@sluice/kit/foreign-json'
import { AppError, type Clock, errorText } from '@sluice/sdk'
import type { RawData, WebSocket } from 'ws'

/** Why a connection is to be replaced; on `refresh` it still works for some seconds. */
export type Ending = 'refresh' | 'disabled' | 'closed'

export interface Connection {
  /** Resolves once, with the first reason. */
  readonly ending: Promise<Ending>
  readonly isOpen: boolean
  /** Ends it when what it brought is acknowledged, within seconds. Idempotent. */
  retire(): Promise<void>
  /** Ends it now. Idempotent. */
  close(): void
}

export interface ConnectionOptions {
  readonly url: string
  readonly clock: Clock
  readonly signal: AbortSignal
  /** Slack is about to send. */
  onHello(): void
  /** Acknowledged if it resolves; if it rejects, Slack brings the envelope again. Called in the order of arrival. */
  onEnvelope(type: string, payload: Members): Promise<void>
}

const HELLO_MS = 15_000
const PING_MS = 15_000
/** Slack pings every few seconds: then the other end is gone. */
const SILENCE_MS = 40_000
const RETIRE_MS = 3000
const CLOSE_MS = 1000
const FRAME_BYTES_MAX = 4 * 1024 * 1024

/** Resolves when Slack has said hello. Throws `unavailable`. */
export async function openConnection({ url, clock, signal, onHello, onEnvelope }: ConnectionOptions): Promise<Connection> {
  const { WebSocket } = await import('ws')
  const socket = new WebSocket(url, {
    handshakeTimeout: HELLO_MS,
    maxPayload: FRAME_BYTES_MAX,
    perMessageDeflate: false,
  })
  const hello = Promise.withResolvers<void>()
  const ending = Promise.withResolvers<Ending>()
  const closed = new AbortController()
  const inFlight = new Set<Promise<void>>()
  let heardAtMs = clock.monotonicMs()

  const take = async (envelope: string, type: string, payload: Members): Promise<void> => {
    try {
      await onEnvelope(type, payload)
      if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ envelope_id: envelope }))
    } catch {
      // Whoever could not keep it has said so; without an acknowledgement it comes again.
    }
  }
  const onFrame = (data: RawData): void => {
    const frame = members(parsedOrUndefined(String(data)))
    if (frame.type === 'hello') {
      onHello()
      hello.resolve()
    }
    if (frame.type === 'disconnect') ending.resolve(frame.reason === 'link_disabled' ? 'disabled' : 'refresh')
    const envelope = text(frame.envelope_id)
    if (envelope === '') return
    const taken = take(envelope, text(frame.type), members(frame.payload)).finally(() => inFlight.delete(taken))
    inFlight.add(taken)
  }
  const heard = () => {
    heardAtMs = clock.monotonicMs()
  }
  const end = () => {
    socket.close(1000)
    void clock.sleep(CLOSE_MS, closed.signal).then(() => socket.terminate())
  }
  let problem = 'before it said hello'

  socket.on('message', (data) => {
    heard()
    onFrame(data)
  })
  socket.on('ping', heard).on('pong', heard)
  // Followed by `close`.
  socket.on('error', (error) => {
    problem = `(${errorText(error)})`
  })
  socket.once('close', () => {
    signal.removeEventListener('abort', end)
    closed.abort()
    hello.reject(new AppError('unavailable', `The connection to slack ended ${problem}`))
    ending.resolve('closed')
  })
  signal.addEventListener('abort', end, { once: true })
  if (signal.aborted) end()

  await Promise.race([hello.promise, deadline(clock, closed.signal)]).catch((error: unknown) => {
    socket.terminate()
    throw error
  })
  void keepAlive(socket, { clock, closed: closed.signal, silentMs: () => clock.monotonicMs() - heardAtMs })
  return {
    ending: ending.promise,
    get isOpen() {
      return socket.readyState === WebSocket.OPEN
    },
    async retire() {
      await Promise.race([Promise.all(inFlight), clock.sleep(RETIRE_MS, closed.signal)])
      end()
    },
    close: end,
  }
}

async function deadline(clock: Clock, closed: AbortSignal): Promise<never> {
  await clock.sleep(HELLO_MS, closed)
  throw new AppError('unavailable', `slack did not say hello within ${HELLO_MS / 1000} s`)
}

/** Notices an end that vanished without closing. */
async function keepAlive(
  socket: WebSocket,
  { clock, closed, silentMs }: { readonly clock: Clock; readonly closed: AbortSignal; silentMs(): number },
): Promise<void> {
  while (!closed.aborted) {
    await clock.sleep(PING_MS, closed)
    if (closed.aborted) return
    if (silentMs() > SILENCE_MS) return socket.terminate()
    socket.ping()
  }
}
