/**
 * The safety process: sensors, motors and the decision, apart from the daemon, so that they go on while that is busy and stop
 * when it is gone. A module the daemon imports to learn where it is, and a process runs; only ever imported dynamically, so that
 * a bundler gives it a file of its own.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { FromKernel, KernelInit, ToKernel } from './messages.ts'

export const SAFETY_PROCESS_URL = import.meta.url
export const SAFETY_PROCESS_MARK = 'sluice-robot-safety'

/** Told, and not yet with a daemon that is busy: more is not kept. */
const TOLD_MAX = 256
const LAST_WORDS_MS = 100
const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

if (process.argv[2] === SAFETY_PROCESS_MARK && process.send) await serve()

async function serve(): Promise<void> {
  let told = 0
  let isOver = false
  let close = async (_why: string): Promise<void> => undefined
  const tell = (message: FromKernel): void => {
    if (!process.connected || told >= TOLD_MAX) return
    told++
    process.send?.(message, () => void told--)
  }
  const end = async (why: string, code = 0): Promise<void> => {
    if (isOver) return
    isOver = true
    try {
      await close(why)
      const saidBy = performance.now() + LAST_WORDS_MS
      while (told > 0 && process.connected && performance.now() < saidBy) await sleep(1)
    } finally {
      // However that went: without this process the motors end with their last command
      process.exit(code)
    }
  }
  const fail = (error: unknown): void => {
    const why = error instanceof Error ? error.message : String(error)
    tell({ kind: 'failed', why })
    void end(`the safety process failed: ${why}`, 1)
  }
  // Before anything takes time: the daemon may be gone already
  process.once('disconnect', () => void end('the daemon is gone'))
  for (const signal of SIGNALS) process.on(signal, () => void end(`the safety process got ${signal}`))
  process.on('uncaughtException', fail)
  const init = Promise.withResolvers<KernelInit>()
  const early: ToKernel[] = []
  let take = (message: ToKernel): void => void early.push(message)
  process.once('message', (first: KernelInit) => {
    process.on('message', (message: ToKernel) => take(message))
    init.resolve(first)
  })
  if (!process.connected) return end('the daemon is gone')
  try {
    const { goFirst, startKernel } = await import('./start-kernel.ts')
    goFirst()
    const kernel = await startKernel(await init.promise, (message) => {
      tell(message)
      if (message.kind === 'faulted') void end(message.why)
    })
    close = (why) => kernel.close(why)
    take = (message) => kernel.take(message)
    tell({ kind: 'ready' })
    for (const message of early) kernel.take(message)
  } catch (error) {
    fail(error)
  }
}
