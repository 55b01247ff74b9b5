/**
 * `sluice daemon`: runs the daemon in the foreground until SIGINT, SIGTERM, or the end of its terminal. Under systemd it takes the
 * socket that systemd passes, and reports its state.
 */
import { isatty } from 'node:tty'
import { createSluice, type Sluice } from '@sluice/daemon'
import type { CommandFrame, DevicesPage, PairingCode, Status } from '@sluice/http/answers'
import { systemClock } from '@sluice/kit'
import { AppError, type Logger } from '@sluice/sdk'
import type { CliContext, Output } from '../context.ts'
import { beginAgain, canBeginAgain } from '../service/begin-again.ts'
import { fitHeap } from '../service/memory-limit.ts'
import type { SystemdReports } from '../service/notify-systemd.ts'

/** The time that work has to end after the daemon has stopped, before the process exits. */
const LINGER_MS = 1000
/** The time between two attempts to reach the database. */
const WAIT_MS = 2000
/** The log is held back for so long at most while the daemon starts at a terminal. */
const HELD_MS_MAX = 5000

export async function run(context: CliContext): Promise<number> {
  const { out, options, features, dataDir, env, profile } = context
  await fitHeap(env)
  const stopSignal = context.interrupted()
  using hangUp = watchHangUp()
  const socket = await givenSocket(env)
  const asked = Promise.withResolvers<'stop' | 'restart'>()
  const opensPage = process.stdout.isTTY && features.some(({ id }) => id === 'dashboard')
  const writeLog = opensPage ? holdLog() : () => {}
  const start = (): Promise<Sluice> =>
    createSluice({
      features,
      dataDir,
      config: context.configFile,
      env,
      profile,
      newDatabase: options['new-database'] === true,
      program: [process.execPath, ...process.execArgv, process.argv[1] ?? ''],
      control: {
        stop: () => asked.resolve('stop'),
        // A program that begins again would not have the socket that the service manager has passed.
        ...(canBeginAgain() && socket === undefined && { restart: () => asked.resolve('restart') }),
      },
      listen: {
        ...(socket !== undefined && { socket }),
        ...(typeof options.host === 'string' && { host: options.host }),
        ...(typeof options.port === 'string' && { port: portNumber(options.port) }),
      },
    })
  const sluice = await startOnceReachable(start, out, stopSignal).catch((error: unknown) => {
    writeLog()
    throw error
  })
  if (!sluice) return 0
  surviveErrors(sluice.log)
  try {
    if (opensPage) await printPageLink(sluice, out)
    out.print(`sluice ${context.version} (${profile}) listening on ${sluice.url}`)
    if (!opensPage) await printFirstSteps(sluice, out)
  } finally {
    writeLog()
  }
  const systemd = await reportsTo(env, sluice.log)
  hangUp.onReload(async () => {
    await systemd?.reloading()
    await sluice.reload()
    await systemd?.ready()
  })
  await systemd?.ready()
  const why = await Promise.race([aborted(stopSignal), hangUp.terminalClosed, asked.promise])
  void systemd?.stopping()
  try {
    await sluice.close()
  } finally {
    systemd?.close()
    if (why === 'restart') beginAgain()
    // The process must not stay alive without its listener if the stop failed or a handle is still open.
    setTimeout(() => process.exit(), LINGER_MS).unref()
  }
  return 0
}

/**
 * Starts the daemon, and waits for a database server that is away, because a daemon that runs does so too. Resolves to undefined when
 * `stop` aborts first.
 */
export async function startOnceReachable<T>(
  start: () => Promise<T>,
  out: Pick<Output, 'warn'>,
  stop: AbortSignal,
  waitMs = WAIT_MS,
): Promise<T | undefined> {
  let said = ''
  while (!stop.aborted) {
    try {
      return await start()
    } catch (error) {
      if (!(error instanceof AppError && error.code === 'unavailable' && error.isPassing)) throw error
      if (error.message !== said)
        out.warn(`The daemon waits for its database and tries again every ${waitMs / 1000} seconds. ${error.message}`)
      said = error.message
      await systemClock.sleep(waitMs, stop)
    }
  }
  return undefined
}

type Environment = CliContext['env']

/** The modules for service managers are loaded only under one. */
async function givenSocket(env: Environment): Promise<number | undefined> {
  if (env.LISTEN_FDS === undefined) return undefined
  const { inheritedSocket } = await import('../service/inherited-socket.ts')
  return inheritedSocket(env, process.pid)
}

async function reportsTo(env: Environment, log: Logger): Promise<SystemdReports | undefined> {
  if (!env.NOTIFY_SOCKET) return undefined
  const { systemdReports } = await import('../service/notify-systemd.ts')
  return systemdReports({ env, pid: process.pid, log })
}

/** Handles SIGHUP, which a person sends to reload the configuration and the system sends when the terminal closes. */
function watchHangUp() {
  const terminals = [process.stdin.fd, process.stdout.fd, process.stderr.fd].filter((fd) => isatty(fd))
  const terminalClosed = Promise.withResolvers<void>()
  // A daemon that is still starting has just read the configuration, so it ignores a reload.
  let reload = async () => {}
  const onHangUp = () => {
    if (terminals.every((fd) => isatty(fd))) void reload()
    else terminalClosed.resolve()
  }
  process.on('SIGHUP', onHangUp)
  return {
    [Symbol.dispose]: () => void process.off('SIGHUP', onHangUp),
    terminalClosed: terminalClosed.promise,
    onReload(handler: () => Promise<void>) {
      reload = handler
    },
  }
}

/** Keeps the daemon running after an error in one request, turn or feature, and after the reader of its output has gone. */
function surviveErrors(log: Logger): void {
  process.on('unhandledRejection', (error) => log.error('unhandled promise rejection', { error }))
  process.on('uncaughtException', (error) => log.error('uncaught exception', { error }))
  for (const stream of [process.stdout, process.stderr]) stream.removeAllListeners('error').on('error', () => {})
}

/** Holds back the log, so that a person at a terminal sees the link first. Returns a function that writes it; a slow start does so, too. */
function holdLog(): () => void {
  process.stderr.cork()
  let isHeld = true
  const write = () => {
    if (isHeld) process.stderr.uncork()
    isHeld = false
    clearTimeout(timer)
  }
  const timer = setTimeout(write, HELD_MS_MAX)
  return write
}

/** Prints a link that opens the dashboard, signed in. Only at a terminal, because readers of a log must not get it. */
async function printPageLink(sluice: Sluice, out: Output): Promise<void> {
  const body = { words: ['dashboard'], cwd: process.cwd(), json: false }
  const answer = (await sluice.call({ method: 'POST', path: '/api/commands', body })) as Response
  const frames = (await answer.text()).split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as CommandFrame]))
  const [link] = frames.flatMap((frame) => (frame.type === 'print' ? [frame.line] : []))
  if (link === undefined) return
  out.hint(`open the dashboard (works once, for a minute; 'sluice dashboard' prints a new link):\n  ${out.style('bold', link)}`)
}

/** Prints a first request; with pairing, also a pairing code at a terminal or if no device is paired yet. */
async function printFirstSteps({ url, call }: Sluice, out: Output): Promise<void> {
  const { require_pairing } = (await call({ method: 'GET', path: '/api/status' })) as Status
  if (!require_pairing) {
    out.print(`try it:\n  ${turnCommand(url)}`)
    return
  }
  const { devices } = (await call({ method: 'GET', path: '/api/devices' })) as DevicesPage
  if (devices.length > 0 && !process.stdout.isTTY) return
  const { pairing_code: code } = (await call({ method: 'POST', path: '/api/pairing/initiate' })) as PairingCode
  out.print(`pairing code (one use): ${code}`)
  out.print('try it:')
  out.print(`  TOKEN=$(curl -sS -X POST ${url}/pair -H 'X-Pairing-Code: ${code}' | sed 's/.*"token":"\\([^"]*\\)".*/\\1/')`)
  out.print(`  ${turnCommand(url, '-H "Authorization: Bearer $TOKEN" ')}`)
}

const turnCommand = (url: string | null, header = ''): string =>
  `curl -sS ${url}/webhook ${header}-H 'Content-Type: application/json' -d '{"message":"hello"}'`

function portNumber(text: string): number {
  const port = Number(text)
  if (!/^\d+$/.test(text) || port > 65_535) throw new AppError('invalid_request', `--port wants a number from 0 to 65535, not '${text}'`)
  return port
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => (signal.aborted ? resolve() : signal.addEventListener('abort', () => resolve(), { once: true })))
