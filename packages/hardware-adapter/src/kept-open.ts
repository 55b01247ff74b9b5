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
  let current: Promise<Port> | undefined
  let idle = new AbortController()
  let last: Promise<unknown> = Promise.resolve()

  const close = async (): Promise<void> => {
    idle.abort()
    const opened = current
    current = undefined
    // It may be gone already, or never have been there.
    await opened?.then((port) => port.close()).catch(() => undefined)
  }

  const closeWhenIdle = async (opened: Promise<Port>, { signal }: AbortController): Promise<void> => {
    await clock.sleep(IDLE_MS, signal)
    // In its turn: whoever comes meanwhile would open what is still held.
    last = last.then(() => (!signal.aborted && current === opened ? close() : undefined))
  }

  const transact = async <Result>(work: (port: Port) => Promise<Result>): Promise<Result> => {
    idle.abort()
    current ??= open()
    const opened = current
    let port: Port | undefined
    try {
      port = await opened
      return await work(port)
    } catch (error) {
      if (!port || !leavesTransportUsable(error)) await close()
      throw error
    } finally {
      idle = new AbortController()
      if (current === opened) void closeWhenIdle(opened, idle)
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
