/** Opens connections to PostgreSQL: hosts, TLS, the settings of a session, and how values are read. */
import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import { AppError } from '@sluice/sdk'
import pg from 'pg'
import { WrongServerError } from './postgres-error.ts'
import { type ServerHistory, wentBack } from './server-history.ts'
import { fromStored, toParameter } from './text-code.ts'

export type TlsMode = 'auto' | 'off' | 'verify'

export interface ConnectionSettings {
  /** `postgres://user:password@host:port/database`. Several hosts are separated by commas; the one that accepts writes is used. */
  readonly url: string
  /** The schema of the tables. Default: `sluice`. */
  readonly schema?: string
  /** `auto`: no TLS on loopback and on a socket of this machine, and `verify` elsewhere. Default: `auto`. */
  readonly tls?: TlsMode
  /** The file with the certificates of the authority that signed the server's certificate. Default: Node's certificates. */
  readonly caFile?: string
  /** The time limit for a new connection. Default: 5 seconds. */
  readonly connectMs?: number
  /** Refuses a database that went back since it was last seen. Default: any state of the database is accepted. */
  readonly history?: ServerHistory
}

export const DEFAULT_SCHEMA = 'sluice'
const CONNECT_MS = 5_000
/** A process that stops in a transaction loses it after this time, so that its locks do not outlive its leases. */
const IDLE_IN_TRANSACTION_MS = 2_000
const TRANSACTION_MS = 5_000
const CHECK_CLIENT_MS = 1_000
/** The server ends each statement after 5 seconds: a connection without an answer for longer is half open. */
const UNANSWERED_MS_MAX = 7_000
const CLOSE_MS = 1_000
const NAME = 'sluice'
/** The first version with `transaction_timeout`. */
const HAS_TRANSACTION_TIMEOUT = 170_000
/** The oldest version that the tests run on. */
const VERSION_MIN = 150_000

const SERVER = `
  SELECT pg_is_in_recovery() AS standby, current_setting('server_version_num')::int AS version,
    current_setting('synchronous_commit') AS commit, pg_postmaster_start_time()::text AS "startedAt"`
/** How long a connection waits for the other hosts once one accepts writes. */
const OTHERS_MS = 1_000

interface Host {
  readonly host: string
  readonly port: number
}

interface Target {
  readonly hosts: readonly Host[]
  readonly user: string
  readonly password: string | undefined
  readonly database: string
}

/** Throws `config_invalid` for a URL that names no server. Its text holds a password, so no error quotes it. */
export function parseUrl(url: string): Target {
  const found = /^postgres(?:ql)?:\/\/(?:([^:@/?]*)(?::([^@/?]*))?@)?([^/?]*)(?:\/([^?]*))?(?:\?(.*))?$/.exec(url)
  if (!found) throw invalid('is not of the form postgres://user:password@host:port/database')
  const [, user = '', password, hosts = '', database = '', query = ''] = found
  const socket = new URLSearchParams(query).get('host')
  try {
    const name = decodeURIComponent(user) || 'postgres'
    return {
      hosts: (socket === null ? hosts : socket).split(',').map(parseHost),
      user: name,
      password: password === undefined ? undefined : decodeURIComponent(password),
      database: decodeURIComponent(database) || name,
    }
  } catch (error) {
    if (error instanceof AppError) throw error
    throw invalid('has a part that is not percent-encoded')
  }
}

/** Names a database and its schema without a password. */
export function databaseName({ url, schema = DEFAULT_SCHEMA }: Pick<ConnectionSettings, 'url' | 'schema'>): string {
  const { hosts, database } = parseUrl(url)
  return `${hosts.map(({ host, port }) => `${host}:${port}`).join(',')}/${database} ${schema}`
}

function parseHost(text: string): { host: string; port: number } {
  if (text.startsWith('/')) return { host: text, port: 5432 }
  const [, inBrackets, plain, port = '5432'] = /^(?:\[([0-9a-fA-F:.]+)\]|([^:]*))(?::(\d{1,5}))?$/.exec(text) ?? []
  const host = inBrackets ?? plain
  if (!host || Number(port) > 65_535) throw invalid('has a host that is not of the form host:port')
  return { host, port: Number(port) }
}

const invalid = (why: string): AppError => new AppError('config_invalid', `store.url ${why}.`)

const isLocal = (host: string): boolean => host.startsWith('/') || /^(?:localhost|127\.\d+\.\d+\.\d+|::1)$/.test(host)

function tlsOf({ tls = 'auto', caFile }: ConnectionSettings, host: string): ConnectionOptions | false {
  if (tls === 'off' || (tls === 'auto' && isLocal(host))) return false
  if (caFile === undefined) return { rejectUnauthorized: true, servername: host }
  try {
    return { rejectUnauthorized: true, servername: host, ca: readFileSync(caFile, 'utf8') }
  } catch (error) {
    throw new AppError('config_invalid', `store.ca_file ${caFile} cannot be read.`, { cause: error })
  }
}

const INT8 = 20
const TEXTS: ReadonlySet<number> = new Set([25, 1043])
/** Reads whole numbers as JavaScript numbers: every number of the schema is below 2^53. */
const TYPES: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') => {
    if (oid === INT8) return Number
    if (TEXTS.has(oid)) return fromStored
    return pg.types.getTypeParser(oid, format as 'text')
  }) as pg.CustomTypesConfig['getTypeParser'],
}

/** Returns the function that reads values of the type with this number from their text. */
export const typeParser = (oid: number): ((text: string) => unknown) => TYPES.getTypeParser(oid, 'text')

/** The connections whose transactions end in time although their client has stopped in the middle of a message. */
const timed = new WeakSet<pg.Client>()

/** Whether a transaction may be sent in one piece, without a Sync after each statement. */
export const endsInTime = (client: pg.Client): boolean => timed.has(client)

export interface ConnectOptions {
  /** True: several statements may be under way. */
  readonly pipeline?: boolean
  /** True: no time limit for a transaction, for migrations and checks. */
  readonly isPatient?: boolean
}

/** A host that accepts writes. */
interface Opened {
  readonly client: pg.Client
  /** `host:port` */
  readonly name: string
  readonly server: Server
}

/**
 * Connects to the host that accepts writes. Where several servers do, it is the only one whose database did not go back. Rejects with the
 * first error of a host other than a standby, if one has such an error, and with a `WrongServerError` when no server is known to be the right one.
 */
export async function connect(settings: ConnectionSettings, options: ConnectOptions = {}): Promise<pg.Client> {
  const target = parseUrl(settings.url)
  const { history } = settings
  const seen = history?.seen
  const opened = await serversOf(target.hosts.map((host) => open(target, host, { settings, options })))
  try {
    const settled = await Promise.allSettled(
      opened.map(async (one) => ({
        one,
        found: history && (await answered(one.client, history.find(queryOf(one.client), one.name, seen))),
      })),
    )
    // A server that does not answer is left out when another one is right.
    const judged = settled.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
    const right = judged.filter(({ found }) => found?.why === undefined)
    const [chosen] = right
    if (!chosen) throw settled.find((result) => result.status === 'rejected')?.reason ?? wentBack(judged.map(({ found }) => found))
    if (right.length > 1) throw split(right.map(({ one }) => one.name))
    if (chosen.found)
      history?.accept(
        chosen.found,
        judged.filter((other) => other !== chosen).map(({ one }) => one.name),
      )
    for (const { client } of opened) if (client !== chosen.one.client) void disconnect(client)
    if (chosen.one.server.endsInTime) timed.add(chosen.one.client)
    return chosen.one.client
  } catch (error) {
    for (const { client } of opened) void disconnect(client)
    throw error
  }
}

/** Resolves to a connection to each server that accepts writes, in the order of the hosts. Rejects when no host accepts writes. */
async function serversOf(asked: readonly Promise<Opened>[]): Promise<readonly Opened[]> {
  const opened: (Opened | undefined)[] = asked.map(() => undefined)
  const all = Promise.allSettled(
    asked.map(async (one, at) => {
      opened[at] = await one
    }),
  )
  await Promise.any(asked).catch(({ errors }: AggregateError) => {
    throw errors.find((error) => !(error instanceof StandbyError)) ?? errors[0]
  })
  // A host that is away must not delay each connection to the one that answers.
  if (asked.length > 1) await Promise.race([all, new Promise((resolve) => setTimeout(resolve, OTHERS_MS).unref())])
  // Several hosts of the address may be names of one server.
  const servers = new Map<string, Opened>()
  for (const one of opened) if (one && !servers.has(one.server.startedAt)) servers.set(one.server.startedAt, one)
  const used = new Set(servers.values())
  void all.then(() => {
    for (const one of opened) if (one && !used.has(one)) void disconnect(one.client)
  })
  return [...used]
}

const split = (names: readonly string[]): WrongServerError =>
  new WrongServerError(
    `${names.join(' and ')} of store.url both accept writes, so that one of them is an old primary. Stop that one, or make it a standby of the other: docs/cluster.md#fencing.`,
  )

async function open(
  { user, password, database }: Target,
  { host, port }: Host,
  { settings, options }: { readonly settings: ConnectionSettings; readonly options: ConnectOptions },
): Promise<Opened> {
  const client = new pg.Client({
    host,
    port,
    user,
    ...(password !== undefined && { password }),
    database,
    ssl: tlsOf(settings, host),
    connectionTimeoutMillis: settings.connectMs ?? CONNECT_MS,
    keepAlive: true,
    application_name: NAME,
    types: TYPES,
    ...(options.pipeline && { pipeline: true }),
  })
  // A connection that breaks while nothing is under way emits an error. The next statement reports it.
  client.on('error', () => undefined)
  try {
    await client.connect()
    return { client, name: `${host}:${port}`, server: await answered(client, prepareSession(client, settings, options)) }
  } catch (error) {
    client.end().catch(() => undefined)
    throw error
  }
}

class StandbyError extends WrongServerError {
  constructor() {
    super('The server is a standby, which accepts no writes.')
  }
}

interface Server {
  /** Tells servers apart: one server may have several names. */
  readonly startedAt: string
  /** Whether it ends a transaction whose client has stopped in the middle of a message. */
  readonly endsInTime: boolean
}

async function prepareSession(
  client: pg.Client,
  { schema = DEFAULT_SCHEMA }: ConnectionSettings,
  { isPatient, pipeline }: ConnectOptions,
): Promise<Server> {
  const { rows } = await client.query<{ standby: boolean; version: number; commit: string; startedAt: string }>(SERVER)
  const [server] = rows
  if (!server || server.standby) throw new StandbyError()
  if (server.version < VERSION_MIN) throw new AppError('config_invalid', 'The server is older than PostgreSQL 15.')
  const limit = server.version >= HAS_TRANSACTION_TIMEOUT ? 'transaction_timeout' : 'statement_timeout'
  const settings = [
    `search_path = ${pg.escapeIdentifier(schema)}`,
    `idle_in_transaction_session_timeout = ${IDLE_IN_TRANSACTION_MS}`,
    `client_connection_check_interval = ${CHECK_CLIENT_MS}`,
    `${limit} = ${isPatient ? 0 : TRANSACTION_MS}`,
    'standard_conforming_strings = on',
    // Compiling a statement to machine code takes longer than each of ours, and the costs without `enable_seqscan` ask for it always.
    'jit = off',
    // Writes find their rows by keys. The server plans a prepared statement once, perhaps while the table is new and small, and would read
    // the whole table from then on.
    ...(pipeline ? ['enable_seqscan = off'] : []),
    // An acknowledged write must survive a crash of the server, whatever the defaults of the database say.
    ...(['off', 'local'].includes(server.commit) ? ['synchronous_commit = on'] : []),
  ]
  await client.query(settings.map((setting) => `SET ${setting}`).join('; '))
  // Earlier versions limit the time of a statement, and of an idle transaction, but not the time between the parts of a message.
  return { startedAt: server.startedAt, endsInTime: server.version >= HAS_TRANSACTION_TIMEOUT && !isPatient }
}

export interface Statement {
  readonly text: string
  readonly values: readonly unknown[]
}

/**
 * Creates a statement. Throws a TypeError for a value that no column holds. Its text is a constant of this package: each different text is prepared once
 * for each connection.
 */
export const sql = (text: string, ...values: readonly unknown[]): Statement => ({ text, values: values.map(toParameter) })

export type Row = Record<string, unknown>

/** The same text has the same name on each connection. */
export const nameOf = (text: string): string => hash('sha1', text, 'base64url')

/** Sends one statement and resolves to its result. */
export const send = (client: pg.Client, { text, values }: Statement): Promise<pg.QueryResult<Row>> =>
  client.query<Row>({ name: nameOf(text), text, values: values as unknown[] })

/** Breaks the connection when what was sent on it is not answered in time. */
export async function answered<T>(client: pg.Client, answer: Promise<T>, ms: number = UNANSWERED_MS_MAX): Promise<T> {
  const timer = setTimeout(() => streamOf(client).destroy(new Error('connection without an answer')), ms).unref()
  try {
    return await answer
  } finally {
    clearTimeout(timer)
  }
}

/** Closes a connection in order, or at once when it is broken or the server does not answer. */
export async function disconnect(client: pg.Client | undefined): Promise<void> {
  if (!client) return
  const timer = setTimeout(() => streamOf(client).destroy(), CLOSE_MS)
  await client.end().catch(() => undefined)
  clearTimeout(timer)
}

const streamOf = (client: pg.Client): Socket =>
  (client as unknown as { readonly connection: { readonly stream: Socket } }).connection.stream

export type All = <R = Row>(text: string, ...values: readonly unknown[]) => Promise<R[]>

/** Returns what runs statements on one connection. */
export const queryOf =
  (client: pg.Client): All =>
  async <R = Row>(text: string, ...values: readonly unknown[]) => {
    const statement = sql(text, ...values)
    return (await client.query(statement.text, statement.values as unknown[])).rows as R[]
  }

/** Writes an entry of `meta`. */
export const PUT_META = 'INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value'

export const metaOf = async (all: All): Promise<ReadonlyMap<string, string>> =>
  new Map((await all('SELECT key, value FROM meta')).map(({ key, value }) => [String(key), String(value)]))
