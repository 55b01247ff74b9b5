/** Opens the API for a command: at the daemon of the data directory, at `--url`, or in this process if no daemon runs. */
import { statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { controlAddress } from '@sluice/http/control-address'
import { signalScope } from '@sluice/kit'
import { AppError, loadFeatures } from '@sluice/sdk'
import type { CliContext } from '../context.ts'
import { textOption } from '../option-values.ts'
import { Api } from './api.ts'
import { connectHttp, connectInProcess, noAnswer, type Transport } from './transport.ts'

/** The time that a daemon which starts, stops or hangs has to answer. */
const ANSWER_MS_MAX = 5000
const RETRY_MS = 50
/** The variable of the environment that holds the bearer token for `--url`. */
const TOKEN_VARIABLE = 'SVC_TOKEN'

export interface ApiNeeds {
  /** True: without a daemon, the command needs a valid configuration. Default: it works with an invalid one. */
  readonly config?: boolean
  /** True: without a daemon, the features of this build are built in this process, which needs a valid configuration too. */
  readonly features?: boolean
}

/** The API with the function that closes its connection. */
export interface OpenedApi {
  readonly api: Api
  close(): Promise<void>
}

/** Calls `work` with the API, which closes afterwards. Throws `unavailable` if a daemon runs and does not answer. */
export async function withApi(context: CliContext, work: (api: Api) => Promise<number>, needs: ApiNeeds = {}): Promise<number> {
  const { api, close } = await openApi(context, needs)
  try {
    return await work(api)
  } finally {
    await close()
  }
}

const openApi = (context: CliContext, needs: ApiNeeds): Promise<OpenedApi> =>
  whileStarting(context.dataDir, async () => (await openRunning(context)) ?? (await openHere(context, needs)))

/**
 * Calls `attempt` until it returns a value: a daemon that starts or stops holds the lock while nothing listens on its control
 * socket. Throws `unavailable` after 5 seconds.
 */
export async function whileStarting<Value>(dataDir: string, attempt: () => Promise<Value | undefined>): Promise<Value> {
  const untilMs = performance.now() + ANSWER_MS_MAX
  for (;;) {
    const value = await attempt()
    if (value !== undefined) return value
    if (performance.now() > untilMs) throw notAnswering(dataDir)
    await sleep(RETRY_MS)
  }
}

/** Opens the API of the daemon at `--url` or of the data directory; undefined if nothing listens on the control socket there. */
export async function openRunning(context: CliContext): Promise<OpenedApi | undefined> {
  const url = textOption(context, 'url')
  const transport = url === undefined ? await connectDaemon(context.dataDir) : await connectUrl(context, url)
  return transport && { api: new Api(url === undefined ? 'daemon' : 'url', transport), close: transport.close }
}

async function connectUrl(context: CliContext, url: string): Promise<Transport> {
  const transport = await connectHttp({ url: parseUrl(url), token: await readToken(context) })
  return { ...transport, send: (request) => transport.send(request).catch((cause) => fail(noAnswer(url, cause, request.method))) }
}

/**
 * Connects to the daemon of a data directory; undefined if nothing listens on its control socket. Throws `unavailable` if the
 * daemon accepts the connection and does not answer, and `forbidden` if it runs as another user.
 */
async function connectDaemon(dataDir: string): Promise<Transport | undefined> {
  const address = openAddress(dataDir)
  if (!address) return undefined
  const transport = await connectHttp({ socketPath: address.path })
  const close = async (): Promise<void> => {
    await transport.close()
    address.release()
  }
  using limit = signalScope([], ANSWER_MS_MAX)
  try {
    // The daemon answers this request also while it starts. Later requests may take any time.
    const { body } = await transport.send({ method: 'GET', path: '/health', signal: limit.signal })
    for await (const _ of body);
    return { send: (request) => transport.send(request).catch((cause) => fail(noAnswer('The daemon', cause, request.method))), close }
  } catch (error) {
    await close()
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ECONNREFUSED' || code === 'ECONNRESET') return undefined
    if (limit.timedOut) throw notAnswering(dataDir)
    if (code === 'EACCES' || code === 'EPERM') throw otherUser(dataDir)
    throw noAnswer(address.path, error, 'GET')
  }
}

/** Returns undefined if the socket does not exist: nothing listens then, and the HTTP client need not be loaded. */
function openAddress(dataDir: string): ReturnType<typeof controlAddress> | undefined {
  try {
    const address = controlAddress(dataDir)
    if (!address.isFile || statSync(address.path, { throwIfNoEntry: false })) return address
    address.release()
    return undefined
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    if ((error as NodeJS.ErrnoException).code === 'EACCES') throw otherUser(dataDir)
    throw error
  }
}

/** Opens the application in this process; undefined while a daemon holds the lock. */
export async function openHere(context: CliContext, { config = false, features = false }: ApiNeeds = {}): Promise<OpenedApi | undefined> {
  // A feature that is not configured says what it lacks.
  if (features) await loadFeatures(context.features)
  const { openInProcess } = await import('@sluice/daemon/in-process')
  const application = await openInProcess({ ...context, only: features ? undefined : config ? 'config' : 'store' })
  return application && { api: new Api('in process', connectInProcess(application)), close: application.close }
}

export const notAnswering = (dataDir: string): AppError =>
  new AppError(
    'unavailable',
    `A daemon holds ${dataDir} and does not answer on its control socket. If it starts or stops, try again; if it hangs, end its process.`,
  )

const otherUser = (dataDir: string): AppError =>
  new AppError(
    'forbidden',
    `${dataDir} belongs to another user, so whether a daemon runs there cannot be seen: run this command as that user`,
  )

function fail(error: Error): never {
  throw error
}

/** Throws `invalid_request` for a text that is not the address of a server. */
export function parseUrl(text: string): URL {
  const url = URL.parse(text)
  if (url && /^https?:$/.test(url.protocol)) return url
  throw new AppError('invalid_request', `--url wants an address such as http://127.0.0.1:42617, not '${text}'`)
}

/** Reads the bearer token from the file of `--token-file` or from the environment: other users can read arguments of processes. */
export async function readToken(context: CliContext): Promise<string | undefined> {
  const file = textOption(context, 'token-file')
  const text = file === undefined ? context.env[TOKEN_VARIABLE] : await readFile(file, 'utf8')
  return text?.trim() || undefined
}
