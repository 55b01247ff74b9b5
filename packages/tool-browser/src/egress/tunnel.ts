/** `CONNECT`: bytes to and fro, for https and for WebSockets. */
import { connect } from 'node:net'
import type { Duplex } from 'node:stream'
import { pinnedLookup } from '@sluice/kit'
import { connectHost } from './connect-host.ts'
import type { Target } from './egress-proxy.ts'

const CONNECT_MS_MAX = 20_000
/** Of a tunnel in which nothing moves. */
const SILENT_MS_MAX = 300_000

/** Resolves once both ends are joined; rejects if the far end cannot be reached. */
export function joinTunnel(
  { url, addresses }: Target,
  { socket, head }: { readonly socket: Duplex; readonly head: Buffer },
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const far = connect({ host: connectHost(url), port: Number(url.port || 80), lookup: pinnedLookup(addresses) })
  const end = () => {
    far.destroy()
    socket.destroy()
  }
  far.setTimeout(CONNECT_MS_MAX, () => far.destroy(new Error('no connection in time')))
  far.once('error', reject)
  socket.once('close', () => far.destroy())
  far.once('connect', () => {
    far.off('error', reject)
    far.setTimeout(SILENT_MS_MAX, end)
    far.on('error', end)
    far.on('close', end)
    socket.write('HTTP/1.1 200 Connection Established\r\n\r\n')
    far.write(head)
    socket.pipe(far)
    far.pipe(socket)
    resolve()
  })
  return promise
}
