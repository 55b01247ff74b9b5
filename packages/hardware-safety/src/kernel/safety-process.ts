/**
 * The safety process: sensors, motors and the decision core run apart from the daemon, so that they go on while the daemon is
 * busy and stop when it is gone. The daemon imports this module for its URL, the process runs it. It must only be imported
 * dynamically, so that a bundler gives it a file of its own.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { KernelInit, KernelMessage, KernelRequest } from './messages.ts'

export const SAFETY_PROCESS_URL = import.meta.url
export const SAFETY_PROCESS_MARK = 'sluice-robot-safety'

/** The most messages that wait for a busy daemon; further ones are dropped. */
const UNSENT_MAX = 256
/** How long the process waits at its end until the last messages are sent. */
const FLUSH_MS_MAX = 100
const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

if (process.argv[2] === SAFETY_PROCESS_MARK && process.send) await serve()

async function serve(): Promise<void> {
  let unsent = 0
  let isEnding = false
  let close = async (_why: string): Promise<void> => undefined
  const send = (message: KernelMessage): void => {
    if (!process.connected || unsent >= UNSENT_MAX) return
    unsent++
    process.send?.(message, () => void unsent--)
  }
  const end = async (why: string, code = 0): Promise<void> => {
    if (isEnding) return
    isEnding = true
    try {
      await close(why)
      const untilMs = performance.now() + FLUSH_MS_MAX
      while (unsent > 0 && process.connected && performance.now() < untilMs) await sleep(1)
    } finally {
      // Exits even when closing failed: without this process the motors stop after their last command.
      process.exit(code)
    }
  }
  const fail = (error: unknown): void => {
    const why = error instanceof Error ? error.message : String(error)
    send({ kind: 'failed', why })
    void end(`the safety process failed: ${why}`, 1)
  }
  // Registers these before any work that takes time: the daemon may already be gone.
  process.once('disconnect', () => void end('the daemon is gone'))
  for (const signal of SIGNALS) process.on(signal, () => void end(`the safety process received ${signal}`))
  process.on('uncaughtException', fail)
  const init = Promise.withResolvers<KernelInit>()
  const early: KernelRequest[] = []
  let handle = (request: KernelRequest): void => void early.push(request)
  process.once('message', (first: KernelInit) => {
    process.on('message', (request: KernelRequest) => handle(request))
    init.resolve(first)
  })
  if (!process.connected) return end('the daemon is gone')
  try {
    const { raisePriority, startKernel } = await import('./start-kernel.ts')
    raisePriority()
    const kernel = await startKernel(await init.promise, (message) => {
      send(message)
      if (message.kind === 'faulted') void end(message.why)
    })
    close = (why) => kernel.close(why)
    handle = (request) => kernel.handle(request)
    send({ kind: 'ready' })
    for (const request of early) kernel.handle(request)
  } catch (error) {
    fail(error)
  }
}
