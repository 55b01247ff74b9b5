// Measures the time from the start of a server to its first 200.
import { connect, createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { startNode } from './processes.mjs'

const ANSWER_MAX_MS = 30_000
const POLL_EVERY_MS = 1

/** Returns a port that was just free: the poll must know the port before the server runs. */
export async function freePort() {
  const server = createServer()
  await new Promise((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve))
  const { port } = server.address()
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** Sends one GET on a new connection. Resolves to the status, or to 0 without an answer. */
export function statusOf(port, path) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () =>
      socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: close\r\n\r\n`),
    )
    socket.once('data', (head) => {
      resolve(Number(head.latin1Slice(9, 12)))
      socket.destroy()
    })
    socket.once('error', () => resolve(0))
    socket.once('close', () => resolve(0))
    socket.setTimeout(1000, () => socket.destroy())
  })
}

/** Starts a server with the arguments that `argsFor(port)` returns; `tookMs` is the time to the first 200 on `/health` on `port`. The caller stops it. */
export async function timeToFirstAnswer({ scratch, argsFor }) {
  const port = await freePort()
  const args = argsFor(port)
  const start = performance.now()
  const server = startNode({ scratch, args })
  let failure
  void server.ended.then((error) => {
    failure = error
  })
  while ((await statusOf(port, '/health')) !== 200) {
    if (!failure && performance.now() - start > ANSWER_MAX_MS) failure = new Error(`${args[0]} did not answer on /health`)
    if (failure) {
      await server.stop()
      throw failure
    }
    await sleep(POLL_EVERY_MS)
  }
  return { tookMs: performance.now() - start, port, pid: server.child.pid, stop: server.stop }
}
