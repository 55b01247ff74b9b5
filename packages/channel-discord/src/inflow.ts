/**
 * Messages on their way to the inbox: in order within a conversation, kept or tried again, and where too many wait, left to
 * the history. A conversation's cursor moves behind what is durable, so that nothing before it is ever owed.
 */
import { AppError, type Clock, type Deliver, errorText, type Inbound, type Logger } from '@sluice/sdk'
import { CURSORS_MAX, type Cursors } from './cursors.ts'
import type { Missed } from './history.ts'
import type { Place } from './parse-message.ts'
import type { Press } from './parse-press.ts'
import { pauseMs } from './pause.ts'

export interface InflowOptions {
  readonly deliver: Deliver
  readonly cursors: Cursors
  readonly clock: Clock
  readonly log: Logger
  /** What is given up when it aborts was not taken in, and is owed after the next start. */
  readonly signal: AbortSignal
  missedIn(channel: string, signal: AbortSignal): AsyncIterable<Missed>
  /** Tells the platform that a press was seen. */
  seen(press: Press): Promise<void>
}

export interface Inflow {
  /** Without `inbound` it only shows how far the conversation has come. */
  message(place: Place, message: Missed): void
  press(press: Press): void
  /** In every conversation something may have been missed up to now. */
  catchUp(): void
  /** Resolves once nothing is under way any more. */
  settled(): Promise<void>
}

type Task =
  | { readonly kind: 'message'; readonly message: Missed }
  | { readonly kind: 'press'; readonly press: Press }
  | { readonly kind: 'history' }

/** Tasks in all lanes. */
export const WAITING_MAX = 2000
const LANES_MAX = 2 * CURSORS_MAX

export function createInflow({ deliver, cursors, clock, log, signal, missedIn, seen }: InflowOptions): Inflow {
  const lanes = new Map<string, Task[]>()
  const running = new Set<Promise<void>>()
  let waiting = 0
  /** One conversation at a time asks for its history. */
  let histories: Promise<unknown> = Promise.resolve()

  const enter = (lane: string, task: Task): void => {
    waiting += 1
    const queue = lanes.get(lane)
    if (queue) return void queue.push(task)
    const started = [task]
    lanes.set(lane, started)
    const run = work(lane, started).finally(() => running.delete(run))
    running.add(run)
  }

  const work = async (lane: string, queue: Task[]): Promise<void> => {
    for (let task = queue.shift(); task && !signal.aborted; task = queue.shift()) {
      if (task.kind === 'history') await takeHistory(lane)
      else if (task.kind === 'message') await takeMessage(lane, task.message)
      else await takePress(task.press)
      waiting -= 1
    }
    lanes.delete(lane)
  }

  const isOwedHistory = (lane: string): boolean => lanes.get(lane)?.at(-1)?.kind === 'history'

  /** False if it was given up. */
  const kept = async (inbound: Inbound): Promise<boolean> => {
    for (let attempt = 1; !signal.aborted; attempt++) {
      try {
        await deliver(inbound)
        return true
      } catch (error) {
        if (!(error instanceof AppError) || error.code !== 'unavailable') {
          log.error('a message cannot be taken in', { channel: 'discord', message: inbound.id, error })
          return true
        }
        if (attempt === 1) log.warn('a message could not be kept, and is tried again', { channel: 'discord', reason: error.message })
        await clock.sleep(pauseMs(attempt), signal)
      }
    }
    return false
  }

  const takeMessage = async (channel: string, { id, inbound }: Missed): Promise<void> => {
    if (!inbound || (await kept(inbound))) cursors.advance(channel, id)
  }

  const takePress = async (press: Press): Promise<void> => {
    if (!(await kept(press.inbound))) return
    await seen(press).catch((error: unknown) =>
      log.debug('a press could not be acknowledged', { channel: 'discord', reason: errorText(error) }),
    )
  }

  const takeHistory = async (channel: string): Promise<void> => {
    for (let attempt = 1; !signal.aborted; attempt++) {
      const pass = histories.then(() => takeOnce(channel))
      histories = pass
      const waitMs = await pass
      if (waitMs === undefined) return
      await clock.sleep(Math.max(waitMs, pauseMs(attempt)), signal)
    }
  }

  /** How long to wait before going on from where it stands; undefined when that is over. Never rejects. */
  const takeOnce = async (channel: string): Promise<number | undefined> => {
    try {
      for await (const message of missedIn(channel, signal)) {
        await takeMessage(channel, message)
        if (signal.aborted) break
      }
      return undefined
    } catch (error) {
      if (signal.aborted) return undefined
      const code = error instanceof AppError ? error.code : 'internal'
      const isGone = code === 'forbidden' || code === 'invalid_request'
      log.warn(isGone ? 'a conversation can no longer be read' : 'a history could not be read, and is tried again', {
        channel: 'discord',
        conversation: channel,
        reason: errorText(error),
      })
      if (isGone) cursors.forget(channel)
      return isGone ? undefined : (error instanceof AppError ? (error.retryAfterSecs ?? 0) : 0) * 1000
    }
  }

  return {
    message({ channel, guild }, message) {
      cursors.saw(channel, { id: message.id, guild })
      if (waiting < WAITING_MAX) return enter(channel, { kind: 'message', message })
      if (isOwedHistory(channel) || lanes.size >= LANES_MAX) return
      log.warn('too many messages wait: newer ones are left to the history', { channel: 'discord', conversation: channel })
      enter(channel, { kind: 'history' })
    },
    press(press) {
      // Not behind its conversation's history: whoever pressed is shown a failure after three seconds.
      if (waiting < WAITING_MAX) enter(`press ${press.inbound.to.to}`, { kind: 'press', press })
      else log.warn('too many messages wait: a press is dropped', { channel: 'discord', conversation: press.inbound.to.to })
    },
    catchUp() {
      for (const channel of cursors.channels()) {
        if (!isOwedHistory(channel)) enter(channel, { kind: 'history' })
      }
    },
    settled: async () => void (await Promise.all(running)),
  }
}
