/** Finds out which client a request comes from, through trusted proxies if there are any. */

import type { GatewayConfig } from '@sluice/config'
import { createClientPeers, type ForwardingWatch } from '../client-peers.ts'
import { type HttpContext, headersOf, type Peer, type Step, socketAddress } from '../context.ts'

/** Sets `peer`. */
export function clientPeer(config: GatewayConfig, forwarding: ForwardingWatch): Step {
  const peers = createClientPeers(config, forwarding)
  /** By socket: unless headers decide, an address is parsed once per connection. */
  const known = new WeakMap<object, Peer>()

  const peerOf = (c: HttpContext): Peer => {
    const headers = headersOf(c)
    const address = socketAddress(c)
    const socket = c.env?.incoming?.socket
    if (!socket || peers.byRequest) return { connection: socket ?? c.req.raw, ...peers.look(address, headers) }
    const before = known.get(socket)
    if (before) {
      peers.notice(address, headers)
      return before
    }
    const peer = { connection: socket, ...peers.look(address, headers) }
    known.set(socket, peer)
    return peer
  }

  return (c, next) => {
    c.set('peer', peerOf(c))
    return next()
  }
}
