/** Runs the statements of the tables in `cold` on SQLite. */
import type { SQLInputValue } from 'node:sqlite'
import type { ColdDatabase, Dialect, Statement, Steps, Value } from '../cold/cold-database.ts'
import { UNSIGNED } from '../cold/row-signing.ts'
import type { Database } from './database.ts'
import type { Writer } from './group-commit.ts'

/** Part of a write. */
export function runSteps<Result>(db: Database, steps: Steps<Result>): Result {
  for (let next = steps.next(); ; ) {
    if (next.done) return next.value
    next = steps.next(next.value.map((one) => rowsOf(db, one)))
  }
}

export const createColdDatabase = (db: Database, writer: Writer, dialect: Dialect): ColdDatabase => ({
  dialect,
  signed: UNSIGNED,
  async all<Row>(text: string, ...values: readonly Value[]) {
    return (await db.page<Row>(text, ...values.map(toInput))).map((row) => ({ ...row }))
  },
  async get<Row>(text: string, ...values: readonly Value[]) {
    const row = db.read(() => db.get<Row>(text, ...values.map(toInput)))
    return row && { ...row }
  },
  read: async (steps) => db.read(() => runSteps(db, steps())),
  write: <Row>(...statements: readonly Statement[]) =>
    writer.write(() => statements.reduce<unknown[]>((_, one) => rowsOf(db, one), [])) as Promise<Row[]>,
  transaction: (steps) => writer.write(() => runSteps(db, steps())),
  dropInSlices: (limit, text, ...values) => writer.dropInSlices(limit, (rows) => rowsOf(db, { text, values: [...values, rows] }).length),
})

const rowsOf = (db: Database, { text, values }: Statement): unknown[] => db.all(text, ...values.map(toInput))

function toInput(value: Value): SQLInputValue {
  if (typeof value === 'boolean') return Number(value)
  return Array.isArray(value) ? JSON.stringify(value) : (value as SQLInputValue)
}
