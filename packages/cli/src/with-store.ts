/** Opens the store for a command that needs no features. A daemon may run on the same database. */
import { systemClock } from '@sluice/kit'
import { createLogger } from '@sluice/runtime/log'
import type { Clock, Store } from '@sluice/sdk'
import { openDataDir } from '@sluice/store'
import type { CliContext } from './context.ts'

/** Runs `work` on the store of the data directory, then closes the store. Does not read the configuration, which may be invalid. */
export async function withStore(context: CliContext, work: (store: Store, clock: Clock) => Promise<number>): Promise<number> {
  const log = createLogger({ level: 'warn', format: 'text', stream: process.stderr, clock: systemClock })
  const store = openDataDir({ dataDir: context.dataDir, clock: systemClock, log })
  try {
    return await work(store, systemClock)
  } finally {
    await store.close()
  }
}
