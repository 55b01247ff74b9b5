/** A file of a data directory with this machine's record of a shared database. It survives when the database goes back. */
import { readFileSync } from 'node:fs'
import { replaceDurably } from '@sluice/kit'

export interface RecordFile {
  /** Returns undefined for another database, and for a file that cannot be read: the machine then believes the database. */
  read(database: string): Readonly<Record<string, unknown>> | undefined
  write(database: string, values: object): void
}

export const openRecordFile = (file: string): RecordFile => ({
  read(database) {
    try {
      const { of, ...values } = JSON.parse(readFileSync(file, 'utf8'))
      return of === database ? values : undefined
    } catch {
      return undefined
    }
  },
  write: (database, values) => replaceDurably(file, `${JSON.stringify({ of: database, ...values })}\n`),
})
