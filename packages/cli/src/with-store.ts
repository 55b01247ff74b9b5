/**
 * Opens the store for a command that needs no features; the daemon may be running on the same file. The configuration is read
 * only where a command asks for it, so that a device can be revoked while the file is not valid.
 */
import { gatewaySection } from '@sluice/config'
import { systemClock } from '@sluice/kit'
import { createLogger } from '@sluice/runtime/log'
import type { Clock, Store } from '@sluice/sdk'
import { openDataDir } from '@sluice/store'
import { configFromContext } from './config-from-context.ts'
import type { CliContext } from './context.ts'

export interface OpenStore {
  readonly store: Store
  readonly clock: Clock
  /** Reads the `[gateway]` section. Rejects with `config_invalid` where the file is not valid. */
  gateway(): ReturnType<typeof readGateway>
}

const readGateway = async (context: CliContext) => (await configFromContext(context)).core(gatewaySection)

export async function withStore(context: CliContext, work: (open: OpenStore) => Promise<number>): Promise<number> {
  const log = createLogger({ level: 'warn', format: 'text', stream: process.stderr, clock: systemClock })
  const store = openDataDir({ dataDir: context.dataDir, clock: systemClock, log })
  try {
    return await work({ store, clock: systemClock, gateway: () => readGateway(context) })
  } finally {
    await store.close()
  }
}
