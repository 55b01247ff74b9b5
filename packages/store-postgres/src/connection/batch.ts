/**
 * A transaction that is sent in one piece: the server answers once, after it has committed everything or nothing. It needs no BEGIN and
 * no COMMIT, because the statements up to one Sync are a transaction. Each statement is prepared and described once for a connection.
 */
import type { EventEmitter } from 'node:events'
import pg from 'pg'
import { nameOf, type Row, type Statement, typeParser } from './connection.ts'

interface Column {
  readonly name: string
  readonly parse: (text: string) => unknown
}

interface Prepared {
  readonly name: string
  readonly columns: readonly Column[]
}

/** The statements that are prepared on each connection, by their texts. */
const preparedOn = new WeakMap<pg.Client, Map<string, Prepared>>()

/** The server's answer. `rows` has the rows of each statement whose answer arrived. */
export interface Answer {
  readonly rows: readonly (readonly Row[] | undefined)[]
  readonly error?: unknown
}

interface Sent {
  readonly text: string
  readonly name: string
  columns: readonly Column[]
  readonly rows: Row[]
}

/** The methods of a connection of `pg` that write messages of the protocol. */
interface Wire {
  readonly stream: { cork(): void; uncork(): void }
  close(of: { type: 'S'; name: string }): void
  parse(of: { name: string; text: string }): void
  describe(of: { type: 'S'; name: string }): void
  bind(of: { statement: string; values: readonly unknown[]; valueMapper: (value: unknown) => unknown }): void
  execute(of: object): void
  sync(): void
}

const { prepareValue } = (pg as unknown as { readonly utils: { prepareValue(value: unknown): unknown } }).utils
const Query = pg.Query as unknown as new (text: string) => EventEmitter

/** Statements of a batch have names of their own, because `pg` does not know that they are prepared. */
const batchName = (text: string): string => `b${nameOf(text)}`

/** Sends the statements. Never rejects. Without an error, everything is committed. */
export function sendAtOnce(client: pg.Client, statements: readonly Statement[]): Promise<Answer> {
  const prepared = preparedOn.get(client) ?? new Map<string, Prepared>()
  preparedOn.set(client, prepared)
  const batch = new Batch(statements, prepared)
  client.query(batch as unknown as pg.Submittable)
  return batch.answer
}

class Batch extends Query {
  readonly #statements: readonly Statement[]
  readonly #prepared: Map<string, Prepared>
  readonly #sent: Sent[] = []
  readonly #answer = Promise.withResolvers<Answer>()
  #at = 0

  constructor(statements: readonly Statement[], prepared: Map<string, Prepared>) {
    super('')
    this.#statements = statements
    this.#prepared = prepared
  }

  get answer(): Promise<Answer> {
    return this.#answer.promise
  }

  submit(wire: Wire): null {
    wire.stream.cork()
    const texts = new Set<string>()
    for (const { text, values } of this.#statements) {
      const known = this.#prepared.get(text)
      const name = known?.name ?? batchName(text)
      if (!known && !texts.has(text)) {
        // An earlier batch that failed may have prepared it.
        wire.close({ type: 'S', name })
        wire.parse({ name, text })
        wire.describe({ type: 'S', name })
      }
      texts.add(text)
      wire.bind({ statement: name, values, valueMapper: prepareValue })
      wire.execute({})
      this.#sent.push({ text, name, columns: known?.columns ?? [], rows: [] })
    }
    wire.sync()
    wire.stream.uncork()
    return null
  }

  handleRowDescription({ fields }: { readonly fields: readonly { readonly name: string; readonly dataTypeID: number }[] }): void {
    const columns = fields.map(({ name, dataTypeID }) => ({ name, parse: typeParser(dataTypeID) }))
    const described = this.#sent[this.#at]?.text
    for (const sent of this.#sent) if (sent.text === described) sent.columns = columns
  }

  handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
    const sent = this.#sent[this.#at]
    if (!sent) return
    const row: Row = {}
    for (const [at, { name, parse }] of sent.columns.entries()) {
      const text = fields[at] ?? null
      row[name] = text === null ? null : parse(text)
    }
    sent.rows.push(row)
  }

  handleCommandComplete(): void {
    this.#at++
  }

  handleReadyForQuery(): void {
    for (const { text, name, columns } of this.#sent) this.#prepared.set(text, { name, columns })
    this.#answer.resolve({ rows: this.#sent.map(({ rows }) => rows) })
  }

  handleError(error: unknown): void {
    this.#answer.resolve({ rows: this.#sent.map(({ rows }, at) => (at < this.#at ? rows : undefined)), error })
  }
}
