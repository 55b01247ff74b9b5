/**
 * Reads pages of lists in a thread of its own, over a second connection to the file. On a cold disk each row of a page may take a read of
 * several milliseconds, and SQLite's reads block their thread.
 */

import type { SQLInputValue } from 'node:sqlite'
import { Worker } from 'node:worker_threads'
import { AppError } from '@sluice/sdk'

/** The thread, which takes about 10 MiB, ends when nothing was read for this time. */
const IDLE_MS = 60_000
/** A read waits this long for a process that holds the file alone, such as for a restore. */
const BUSY_MS_MAX = 1000

const READER = `
  const { parentPort, workerData: { file, busyMs } } = require('node:worker_threads')
  const { DatabaseSync } = require('node:sqlite')
  const db = new DatabaseSync(file, { readOnly: true, timeout: busyMs })
  const statements = new Map()
  const prepare = (sql) => {
    const statement = statements.get(sql) ?? db.prepare(sql)
    statements.set(sql, statement)
    return statement
  }
  parentPort.on('message', ({ id, sql, values }) => {
    try {
      parentPort.postMessage({ id, rows: prepare(sql).all(...values) })
    } catch ({ message, code, errcode, errstr }) {
      parentPort.postMessage({ id, fault: { message, code, errcode, errstr } })
    }
  })
`

interface Answer {
  readonly id: number
  readonly rows?: unknown[]
  readonly fault?: { readonly message: string }
}

export class PageReader {
  readonly #file: string
  #worker: Worker | undefined
  #idle: NodeJS.Timeout | undefined
  #lastId = 0
  /** The reads without an answer, whose callers wait. */
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown[]>>()

  constructor(file: string) {
    this.#file = file
  }

  /** Resolves to the rows of one query. Rejects with SQLite's error. */
  all(sql: string, values: readonly SQLInputValue[]): Promise<unknown[]> {
    this.#worker ??= this.#start()
    const worker = this.#worker
    clearTimeout(this.#idle)
    // A process waits for its reads, but not for the thread.
    worker.ref()
    const answer = Promise.withResolvers<unknown[]>()
    const id = ++this.#lastId
    this.#waiting.set(id, answer)
    worker.postMessage({ id, sql, values })
    return answer.promise
  }

  /** Resolves once the thread has closed the file. Reads without an answer fail. */
  async close(): Promise<void> {
    clearTimeout(this.#idle)
    await this.#worker?.terminate()
  }

  #start(): Worker {
    const worker = new Worker(READER, { eval: true, workerData: { file: this.#file, busyMs: BUSY_MS_MAX } })
    const ended = (error: unknown): void => {
      if (this.#worker !== worker) return
      this.#worker = undefined
      for (const { reject } of this.#waiting.values()) reject(error)
      this.#waiting.clear()
    }
    worker.on('message', (answer: Answer) => this.#settle(worker, answer))
    worker.once('error', ended)
    worker.once('exit', () => ended(new AppError('unavailable', 'The store is closed.')))
    return worker
  }

  #settle(worker: Worker, { id, rows = [], fault }: Answer): void {
    const answer = this.#waiting.get(id)
    this.#waiting.delete(id)
    if (fault) answer?.reject(Object.assign(new Error(fault.message), fault))
    else answer?.resolve(rows)
    if (this.#waiting.size > 0) return
    worker.unref()
    this.#idle = setTimeout(() => void worker.terminate(), IDLE_MS).unref()
  }
}
