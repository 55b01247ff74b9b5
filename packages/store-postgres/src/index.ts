/** The store on PostgreSQL: everything that the embedded store keeps, in a database that several machines can share. */
import { defineFeature, type StoreToolOptions } from '@sluice/sdk'
import type { ConnectionSettings } from './connection/connection.ts'

export type { PostgresOptions } from './open-store.ts'

const settingsOf = ({ url, schema, tls, caFile, connectMs }: StoreToolOptions): ConnectionSettings => ({
  url,
  schema,
  tls,
  connectMs,
  ...(caFile !== undefined && { caFile }),
})

export default defineFeature({
  id: 'store-postgres',
  storeBackend: {
    name: 'postgres',
    // The driver is loaded only where the configuration chooses it.
    open: async (options) => (await import('./open-store.ts')).openPostgresStore(options),
    reencrypt: async (options) =>
      (await import('./maintenance/secret-rotation.ts')).reencrypt({ ...options, settings: settingsOf(options) }),
    recovered: async (options) =>
      (await import('./maintenance/mark-recovered.ts')).markRecovered({
        settings: settingsOf(options),
        atMs: options.atMs,
        nowMs: options.clock.nowMs(),
        about: options,
      }),
    sign: async (options) => (await import('./maintenance/sign-rows.ts')).signRows(settingsOf(options), options),
    move: async (options) => (await import('./copy/move-store.ts')).moveStore(options),
  },
  build: () => ({}),
})
