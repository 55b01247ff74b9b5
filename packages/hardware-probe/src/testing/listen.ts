/** Starts a server of a test on a free port of the loopback interface. */
import type { AddressInfo, Server } from 'node:net'

export async function listen(server: Server): Promise<{ address: string; port: number; close(): Promise<void> }> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  server.once('error', reject)
  server.listen(0, '127.0.0.1', resolve)
  await promise
  const { port } = server.address() as AddressInfo
  return {
    address: `127.0.0.1:${port}`,
    port,
    close: () => new Promise((ended) => void server.close(() => ended())),
  }
}
