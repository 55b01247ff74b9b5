/** The store on PostgreSQL: everything that the embedded store keeps, in a database that several machines can share. */
import { defineFeature } from '@sluice/sdk'

export type { PostgresOptions } from './open-store.ts'

export default defineFeature({
  id: 'store-postgres',
  storeBackend: {
    name: 'postgres',
    // The driver is loaded only where the configuration chooses it.
    open: async (options) => (await import('./open-store.ts')).openPostgresStore(options),
  },
  build: () => ({}),
})
