/** The store on PostgreSQL: everything that the embedded store keeps, in a database that several machines can share. */
export { openPostgresStore, type PostgresOptions } from './open-store.ts'
