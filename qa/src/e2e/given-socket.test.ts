/** A daemon that takes the listening socket of a service manager, as a unit of systemd passes it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { bundle, environment, scratch } from '../daemons/bundle.ts'

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})

/** The shell sets the process id, and becomes the daemon. */
const AS_SERVICE = 'LISTEN_FDS=1 LISTEN_PID=$$ exec "$@"'

/** Opens a port, and starts a daemon that inherits it as descriptor 3. This process then closes its own descriptor. */
async function startWithSocket(host: string, config: string) {
  const { dir, dispose } = scratch(config)
  cleanups.push(dispose)
  const server = createServer().listen(0, host)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const words = [process.execPath, bundle('minimal'), 'daemon', '--data-dir', dir]
  const child = spawn('sh', ['-c', AS_SERVICE, 'sh', ...words], {
    env: environment(),
    stdio: ['ignore', 'pipe', 'pipe', descriptorOf(server)],
  })
  server.close()
  const output = { text: '' }
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', (text: string) => (output.text += text))
  const exited = once(child, 'close')
  cleanups.push(async () => {
    child.kill('SIGKILL')
    await exited
  })
  return { port, output, exited, child }
}

/** The descriptor of a listening server, which Node does not offer otherwise. */
const descriptorOf = (server: Server): number => (server as unknown as { _handle: { fd: number } })._handle.fd

test.skipIf(process.platform === 'win32')(
  'serves on the given socket, and says so where the configuration differs',
  { timeout: 60_000 },
  async () => {
    const { port, output, exited, child } = await startWithSocket('127.0.0.1', '[provider]\nkind = "offline"\n')
    await expect.poll(() => output.text, { timeout: 50_000 }).toContain(`listening on http://127.0.0.1:${port}`)
    expect((await fetch(`http://127.0.0.1:${port}/health`)).status).toBe(200)
    expect(output.text).toContain('another address than [gateway] host and port')
    child.kill('SIGTERM')
    expect((await exited)[0]).toBe(0)
  },
)

test.skipIf(process.platform === 'win32')(
  'refuses unsigned webhooks on a socket that other machines can reach',
  { timeout: 60_000 },
  async () => {
    const unsigned =
      '[provider]\nkind = "offline"\n[channels_config.roomchat]\nbase_url = "http://127.0.0.1:9"\napp_token = "t"\nallowed_users = ["*"]\n'
    const { output, exited } = await startWithSocket('0.0.0.0', unsigned)
    expect((await exited)[0]).toBe(78)
    expect(output.text).toContain('[channels_config.roomchat] webhook_secret')
  },
)
