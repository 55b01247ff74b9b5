/** The application of a data directory where no daemon runs: the same routes on the same store, and nothing else of a daemon. */
import { serveInProcess } from '@sluice/http/in-process'
import { operator } from '@sluice/http/operator'
import type { ApiCall } from '@sluice/sdk'
import { shareDataDir } from '@sluice/store'
import { openRuntime, type RuntimeOptions } from './runtime/open-runtime.ts'

export interface InProcess {
  /** See `serveInProcess`. */
  readonly serve: (request: ApiCall) => Promise<unknown>
  close(): Promise<void>
}

/**
 * Opens the application; undefined while a daemon holds the data directory. Nothing listens, is scheduled or is
 * sent; with `only`, no feature is built. Throws `config_invalid` for a configuration that is needed and not valid.
 */
export async function openInProcess(options: RuntimeOptions): Promise<InProcess | undefined> {
  await using undo = new AsyncDisposableStack()
  const lock = shareDataDir(options.dataDir)
  if (!lock) return undefined
  undo.defer(() => lock.release())
  const runtime = await openRuntime({ ...options, quiet: true, lock })
  undo.defer(() => runtime.close(0))
  if (options.only === 'config') {
    const { openProcedures } = await import('./procedures.ts')
    await openProcedures(runtime)
  }
  undo.move()
  return {
    serve: serveInProcess(runtime, runtime.clients, operator()),
    async close() {
      await runtime.close(0)
      lock.release()
    },
  }
}
