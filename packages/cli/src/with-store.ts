/** Opens the store for a command that needs no features; the daemon may be running on the same file. */
import { gatewaySection } from '@sluice/gateway/config'
import { createLogger } from '@sluice/gateway/log'
import { type Clock, type Store, systemClock } from '@sluice/sdk'
import { openDataDir } from '@sluice/store'
import { configFromContext } from './config-from-context.ts'
import type { CliContext } from './context.ts'

export interface OpenStore {
  readonly store: Store
  readonly clock: Clock
  /** The `[gateway]` section in force. */
  readonly gateway: ReturnType<typeof gatewayOf>
}

const gatewayOf = (config: Awaited<ReturnType<typeof configFromContext>>) => config.core(gatewaySection)

export async function withStore(context: CliContext, work: (open: OpenStore) => Promise<number>): Promise<number> {
  const config = await configFromContext(context)
  const log = createLogger({ level: 'warn', format: 'text', stream: process.stderr, clock: systemClock })
  const store = openDataDir({ dataDir: context.dataDir, clock: systemClock, log })
  try {
    return await work({ store, clock: systemClock, gateway: gatewayOf(config) })
  } finally {
    await store.close()
  }
}
