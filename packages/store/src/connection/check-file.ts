/** Checks the whole database file in a thread of its own, so that a daemon goes on meanwhile. */
import { Worker } from 'node:worker_threads'
import { errorText, type StoreProblem } from '@sluice/sdk'

/** The largest number of problems of each kind. */
const PROBLEMS_MAX = 100

const CHECK = `
  const { parentPort, workerData: { file, max } } = require('node:worker_threads')
  const { DatabaseSync } = require('node:sqlite')
  const db = new DatabaseSync(file, { readOnly: true })
  const faults = db.prepare('PRAGMA integrity_check(' + max + ')').all().map((row) => row.integrity_check)
  const dangling = db.prepare('PRAGMA foreign_key_check').all().slice(0, max)
    .map(({ table, rowid, parent }) => 'row ' + rowid + ' of ' + table + ' refers to a missing row of ' + parent)
  db.close()
  parentPort.postMessage([...faults.filter((fault) => fault !== 'ok'), ...dangling])
`

/** Resolves to the problems of the file; empty when all is well. A file that cannot be read is a problem, too. Never rejects. */
export function checkFile(file: string): Promise<readonly StoreProblem[]> {
  const worker = new Worker(CHECK, { eval: true, workerData: { file, max: PROBLEMS_MAX } })
  return new Promise((resolve) => {
    worker.once('message', (details: readonly string[]) => resolve(details.map((detail) => ({ detail }))))
    worker.once('error', (error) => resolve([{ detail: errorText(error) }]))
    worker.once('exit', () => resolve([{ detail: 'the check ended early' }]))
  })
}
