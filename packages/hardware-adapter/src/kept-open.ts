/** A device that stays open between calls that follow each other, and is given free after a while. */
import type { Clock } from '@sluice/sdk'
import { leavesTransportUsable } from './bus-error.ts'

/** After it, other programs may have the device. */
const IDLE_MS = 10_000

interface Closable {
  close(): Promise<void>
}

export interface KeptOpen<Port> {
  /** One after the other. After an error that may have left the device in the middle of something it is opened anew. */
  use<Result>(work: (port: Port) => Promise<Result>): Promise<Result>
  /** What runs fails; used again, it is opened again. */
  close(): Promise<void>
}

export function keptOpen<Port extends Closable>(clock: Pick<Clock, 'sleep'>, open: () => Promise<Port>): KeptOpen<Port> {
  let current: Port | undefined
  let idle = new AbortController()
  let last: Promise<unknown> = Promise.resolve()

  const close = async (): Promise<void> => {
    idle.abort()
    const port = current
    current = undefined
    // It may be gone already.
    await port?.close().catch(() => undefined)
  }

  const closeWhenIdle = async (port: Port, { signal }: AbortController): Promise<void> => {
    await clock.sleep(IDLE_MS, signal)
    // In its turn: whoever comes meanwhile would open what is still held.
    last = last.then(() => (!signal.aborted && current === port ? close() : undefined))
  }

  const transact = async <Result>(work: (port: Port) => Promise<Result>): Promise<Result> => {
    idle.abort()
    const port = current ?? (await open())
    current = port
    try {
      return await work(port)
    } catch (error) {
      if (!leavesTransportUsable(error)) await close()
      throw error
    } finally {
      idle = new AbortController()
      if (current === port) void closeWhenIdle(port, idle)
    }
  }

  return {
    use(work) {
      const result = last.then(() => transact(work))
      last = result.catch(() => undefined)
      return result
    },
    close,
  }
}
