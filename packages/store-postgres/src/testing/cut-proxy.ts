/** A TCP proxy whose connections a test cuts or leaves half open. */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

export interface CutProxy {
  readonly port: number
  /** Ends every connection at once. */
  cut(): void
  /** Ends every connection at once, and each new one as soon as it is there. */
  refuse(): void
  /** Lets clients connect again. */
  accept(): void
  /** Passes on what clients send, but nothing that the server answers, until the connections are cut. */
  swallowAnswers(): void
  close(): Promise<void>
}

export async function startProxy(target: number): Promise<CutProxy> {
  const pairs = new Set<{ readonly client: Socket; readonly server: Socket; swallows: boolean }>()
  let isRefusing = false
  const listener = createServer((client) => {
    if (isRefusing) {
      client.destroy()
      return
    }
    const server = connect(target, '127.0.0.1')
    const pair = { client, server, swallows: false }
    pairs.add(pair)
    client.pipe(server)
    server.on('data', (data) => {
      if (!pair.swallows) client.write(data)
    })
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      socket.on('error', () => undefined)
      socket.on('close', () => {
        pairs.delete(pair)
        other.destroy()
      })
    }
  }).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const address = listener.address()
  const cut = (): void => {
    for (const { client, server } of pairs) {
      client.destroy()
      // Earlier bytes of the client still reach the server.
      server.end()
    }
  }
  return {
    port: typeof address === 'object' && address ? address.port : 0,
    cut,
    refuse() {
      isRefusing = true
      cut()
    },
    accept() {
      isRefusing = false
    },
    swallowAnswers() {
      for (const pair of pairs) pair.swallows = true
    },
    async close() {
      cut()
      listener.close()
      await once(listener, 'close')
    },
  }
}
