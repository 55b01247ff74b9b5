/** `sluice daemon`: runs until a signal ends it. */
import { isatty } from 'node:tty'
import { startDaemon } from '@sluice/daemon'
import { newPairingCode } from '@sluice/runtime'
import { AppError } from '@sluice/sdk'
import type { CliContext } from '../context.ts'

/** What is left after the stop ends within this, or with the process. */
const LINGER_MS = 1000
const HOLD_MS = 60_000

export async function run(context: CliContext): Promise<number> {
  const { out, options } = context
  const signal = context.interrupted()
  const terminals = [process.stdin.fd, process.stdout.fd, process.stderr.fd].filter((fd) => isatty(fd))
  const hungUp = Promise.withResolvers<void>()
  // A daemon that is still starting has just read the configuration.
  let reload = async () => {}
  process.on('SIGHUP', () => {
    // A terminal that was closed sends the same signal as a person who asks for a reload.
    if (terminals.every((fd) => isatty(fd))) void reload()
    else hungUp.resolve()
  })
  const daemon = await startDaemon({
    ...context,
    ...(typeof options.host === 'string' ? { host: options.host } : {}),
    newDatabase: options['new-database'] === true,
    ...(typeof options.port === 'string' ? { port: portNumber(options.port) } : {}),
  })
  const { runtime, url } = daemon
  // One request, one turn or one feature gone wrong never ends the daemon.
  process.on('unhandledRejection', (error) => runtime.log.error('a promise was rejected and nobody looked', { error }))
  process.on('uncaughtException', (error) => runtime.log.error('an error was thrown and nobody caught it', { error }))
  // Whoever reads our output may go away; the daemon does not go with it.
  for (const stream of [process.stdout, process.stderr]) stream.removeAllListeners('error').on('error', () => {})
  out.print(`sluice ${context.version} (${context.profile}) listening on ${url}`)
  const devices = await runtime.store.devices.list()
  const required = runtime.snapshot().gateway.require_pairing
  if (required && (devices.length === 0 || process.stdout.isTTY)) {
    const code = await newPairingCode(runtime.store, runtime.snapshot().gateway, runtime.clock)
    for (const line of pairingLines(url, code.code)) out.print(line)
  } else if (!required) out.print(`try it:\n  ${turnCommand(url)}`)
  reload = daemon.reload
  await Promise.race([aborted(signal), hungUp.promise])
  // The clock's timers keep no process alive, and a stop may have nothing else that does.
  const held = setInterval(() => {}, HOLD_MS)
  try {
    await daemon.stop()
  } finally {
    clearInterval(held)
    // A stop that failed, or something that still holds the process, must not leave a daemon nobody can reach.
    setTimeout(() => process.exit(), LINGER_MS).unref()
  }
  return 0
}

const turnCommand = (url: string, header = ''): string =>
  `curl -sS ${url}/webhook ${header}-H 'Content-Type: application/json' -d '{"message":"hello"}'`

const pairingLines = (url: string, code: string): string[] => [
  `pairing code (one use): ${code}`,
  'try it:',
  `  TOKEN=$(curl -sS -X POST ${url}/pair -H 'X-Pairing-Code: ${code}' | sed 's/.*"token":"\\([^"]*\\)".*/\\1/')`,
  `  ${turnCommand(url, '-H "Authorization: Bearer $TOKEN" ')}`,
]

function portNumber(text: string): number {
  const port = Number(text)
  if (!/^\d+$/.test(text) || port > 65_535) throw new AppError('invalid_request', `--port wants a number from 0 to 65535, not '${text}'`)
  return port
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => (signal.aborted ? resolve() : signal.addEventListener('abort', () => resolve(), { once: true })))
