/**
 * `sluice daemon`: runs the daemon in the foreground until SIGINT, SIGTERM, or the end of its terminal. Under systemd it takes the
 * socket that systemd passes, and reports its state.
 */
import { isatty } from 'node:tty'
import { startDaemon } from '@sluice/daemon'
import { newPairingCode, type Runtime } from '@sluice/runtime'
import { AppError } from '@sluice/sdk'
import type { CliContext, Output } from '../context.ts'
import type { SystemdReports } from '../service/notify-systemd.ts'

/** The time that work has to end after the daemon has stopped, before the process exits. */
const LINGER_MS = 1000
const KEEP_ALIVE_MS = 60_000

export async function run(context: CliContext): Promise<number> {
  const { out, options } = context
  const stopSignal = context.interrupted()
  const hangUp = watchHangUp()
  const socket = await givenSocket(context.env)
  const daemon = await startDaemon({
    ...context,
    ...(socket !== undefined && { socket }),
    ...(typeof options.host === 'string' ? { host: options.host } : {}),
    newDatabase: options['new-database'] === true,
    ...(typeof options.port === 'string' ? { port: portNumber(options.port) } : {}),
  })
  const { runtime, url } = daemon
  surviveErrors(runtime)
  out.print(`sluice ${context.version} (${context.profile}) listening on ${url}`)
  await printFirstSteps(runtime, url, out)
  const systemd = await reportsTo(context.env, runtime)
  hangUp.onReload(async () => {
    await systemd?.reloading()
    await daemon.reload()
    await systemd?.ready()
  })
  await systemd?.ready()
  await Promise.race([aborted(stopSignal), hangUp.terminalClosed])
  void systemd?.stopping()
  // Timers of the system clock are unreferenced. Without this one, the process could end before the daemon has stopped.
  const keepAlive = setInterval(() => {}, KEEP_ALIVE_MS)
  try {
    await daemon.stop()
  } finally {
    systemd?.close()
    clearInterval(keepAlive)
    // The process must not stay alive without its listener if the stop failed or a handle is still open.
    setTimeout(() => process.exit(), LINGER_MS).unref()
  }
  return 0
}

type Environment = CliContext['env']

/** The modules for service managers are loaded only under one. */
async function givenSocket(env: Environment): Promise<number | undefined> {
  if (env.LISTEN_FDS === undefined) return undefined
  const { inheritedSocket } = await import('../service/inherited-socket.ts')
  return inheritedSocket(env, process.pid)
}

async function reportsTo(env: Environment, { log }: Runtime): Promise<SystemdReports | undefined> {
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
  process.on('SIGHUP', () => {
    if (terminals.every((fd) => isatty(fd))) void reload()
    else terminalClosed.resolve()
  })
  return {
    terminalClosed: terminalClosed.promise,
    onReload(handler: () => Promise<void>) {
      reload = handler
    },
  }
}

/** Keeps the daemon running after an error in one request, turn or feature, and after the reader of its output has gone. */
function surviveErrors({ log }: Runtime): void {
  process.on('unhandledRejection', (error) => log.error('unhandled promise rejection', { error }))
  process.on('uncaughtException', (error) => log.error('uncaught exception', { error }))
  for (const stream of [process.stdout, process.stderr]) stream.removeAllListeners('error').on('error', () => {})
}

/** Prints a first request; with pairing, also a pairing code at a terminal or if no device is paired yet. */
async function printFirstSteps(runtime: Runtime, url: string, out: Output): Promise<void> {
  const { store, clock } = runtime
  const { gateway } = runtime.snapshot()
  if (!gateway.require_pairing) {
    out.print(`try it:\n  ${turnCommand(url)}`)
    return
  }
  const devices = await store.devices.list()
  if (devices.length > 0 && !process.stdout.isTTY) return
  const { code } = await newPairingCode(store, gateway, clock)
  out.print(`pairing code (one use): ${code}`)
  out.print('try it:')
  out.print(`  TOKEN=$(curl -sS -X POST ${url}/pair -H 'X-Pairing-Code: ${code}' | sed 's/.*"token":"\\([^"]*\\)".*/\\1/')`)
  out.print(`  ${turnCommand(url, '-H "Authorization: Bearer $TOKEN" ')}`)
}

const turnCommand = (url: string, header = ''): string =>
  `curl -sS ${url}/webhook ${header}-H 'Content-Type: application/json' -d '{"message":"hello"}'`

function portNumber(text: string): number {
  const port = Number(text)
  if (!/^\d+$/.test(text) || port > 65_535) throw new AppError('invalid_request', `--port wants a number from 0 to 65535, not '${text}'`)
  return port
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => (signal.aborted ? resolve() : signal.addEventListener('abort', () => resolve(), { once: true })))
