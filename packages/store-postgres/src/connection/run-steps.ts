/** Runs the statements of the tables that both databases share on PostgreSQL. */
import type { ColdDatabase, Dialect, Steps } from '@sluice/store/shared'
import { sql } from './connection.ts'
import type { Database } from './database.ts'
import type { Tx } from './group-commit.ts'

/** Part of a transaction. The statements that a step yields are sent at once and answered in order. */
export async function runSteps<Result>({ all }: Pick<Tx, 'all'>, steps: Steps<Result>): Promise<Result> {
  for (let next = steps.next(); ; ) {
    if (next.done) return next.value
    next = steps.next(await Promise.all(next.value.map(({ text, values }) => all(text, ...values))))
  }
}

export const createColdDatabase = ({ all, get, writer, signatures }: Database, dialect: Dialect): ColdDatabase => ({
  dialect,
  signed: signatures,
  all,
  get,
  read: (steps) => runSteps({ all }, steps()),
  write: (...statements) => writer.write(...statements.map(({ text, values }) => sql(text, ...values))),
  transaction: (steps) => writer.transaction((tx) => runSteps(tx, steps())),
  dropInSlices: writer.dropInSlices,
})
