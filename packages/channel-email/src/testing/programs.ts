/** Runs servers of Debian's packages in the foreground, for tests. */
import { type ChildProcess, spawn } from 'node:child_process'
import { type AddressInfo, connect, createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

const START_MS_MAX = 20_000
const STEP_MS = 30
const END_MS_MAX = 3000

/** Starts a program, and resolves when the port accepts connections. Returns a function that ends it. */
export async function runServer(
  command: readonly [string, ...string[]],
  { env = {}, port }: { readonly env?: Readonly<Record<string, string>>; readonly port: number },
): Promise<() => Promise<void>> {
  const [program, ...args] = command
  const child = spawn(program, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (bytes) => {
      said = `${said}${bytes}`.slice(-5000)
    })
  }
  for (let leftMs = START_MS_MAX; !(await isReachable(port)); leftMs -= STEP_MS) {
    if (leftMs <= 0 || child.exitCode !== null) throw new Error(`${program} does not run: ${said}`)
    await sleep(STEP_MS)
  }
  return () => end(child, port)
}

async function end(child: ChildProcess, port: number): Promise<void> {
  if (child.exitCode === null) {
    const ended = new Promise((resolve) => child.once('close', resolve))
    child.kill('SIGTERM')
    // Milters wait for their connections.
    if (!(await Promise.race([ended.then(() => true), sleep(END_MS_MAX)]))) child.kill('SIGKILL')
    await ended
  }
  for (let leftMs = START_MS_MAX; leftMs > 0 && (await isReachable(port)); leftMs -= STEP_MS) await sleep(STEP_MS)
}

const isReachable = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })

export const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })
