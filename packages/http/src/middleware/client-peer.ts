/** Finds the client of each request, through trusted proxies if there are any, and reports forwarding headers that are ignored. */

import type { ForwardingSetting } from '@sluice/runtime/health'
import type { Logger } from '@sluice/sdk'
import { type HttpContext, headersOf, type Peer, type Step, socketAddress } from '../request/context.ts'
import {
  clientAddress,
  isForwarded,
  isForwardedSecurely,
  isSpared,
  isTrustedPeer,
  type ProxySettings,
  type RequestHeaders,
  trustedProxies,
} from './client-address.ts'

/** Sets `peer`. */
export function clientPeer(peers: ConnectedPeers): Step {
  const peerOf = (c: HttpContext): Peer => {
    const incoming = c.env?.incoming
    const operator = c.env?.operator
    if (operator !== undefined)
      return { connection: incoming?.socket ?? c.req.raw, address: 'control', spared: true, isSecure: false, operator }
    const socket = incoming?.socket
    if (!socket) return { connection: c.req.raw, ...peers.look(socketAddress(c), headersOf(c)) }
    // An upgrade is the last request of its connection: an entry for its socket (190 bytes) would stay as long as the socket.
    if (!c.env?.outgoing) return { connection: c.req.raw, ...peers.look(socketAddress(c), headersOf(c), isEncrypted(socket)) }
    return peers.of(socket, socketAddress(c), headersOf(c))
  }

  return (c, next) => {
    c.set('peer', peerOf(c))
    return next()
  }
}

/** True for the socket of a TLS server, such as that of an embedding program. */
const isEncrypted = (socket: object | undefined): boolean => socket !== undefined && 'encrypted' in socket && socket.encrypted === true

/** The clients of one configuration. */
export class ClientPeers {
  readonly #proxies: ReturnType<typeof trustedProxies>
  /** The setting because of which a header is ignored. */
  readonly #reason: ForwardingSetting
  readonly #forwarding: ForwardingWatch

  constructor(settings: ProxySettings, forwarding: ForwardingWatch) {
    this.#proxies = trustedProxies(settings)
    this.#reason = this.#proxies ? 'trusted_proxies' : 'trust_forwarded_headers'
    this.#forwarding = forwarding
  }

  /** True: one connection may carry requests of several clients. */
  get byRequest(): boolean {
    return this.#proxies !== null
  }

  look(socketAddress: string, headers: RequestHeaders, isEncrypted = false): Pick<Peer, 'address' | 'spared' | 'isSecure'> {
    this.notice(socketAddress, headers)
    return {
      address: clientAddress(socketAddress, headers, this.#proxies),
      spared: isSpared(socketAddress, headers, this.#proxies),
      isSecure: isEncrypted || isForwardedSecurely(socketAddress, headers, this.#proxies),
    }
  }

  /** Reports a forwarding header that is ignored, such as on a later request of a connection. */
  notice(socketAddress: string, headers: RequestHeaders): void {
    if (this.#forwarding.ignored.has(this.#reason) || !isForwarded(headers)) return
    if (!this.#proxies || !isTrustedPeer(socketAddress, this.#proxies)) this.#forwarding.ignore(this.#reason, socketAddress)
  }
}

/** Also remembers the client of each connection. */
export class ConnectedPeers extends ClientPeers {
  /** By socket: unless headers decide, an address is parsed once per connection. */
  readonly #known = new WeakMap<object, Peer>()

  of(socket: object, address: string, headers: RequestHeaders): Peer {
    const before = this.byRequest ? undefined : this.#known.get(socket)
    if (before) {
      this.notice(address, headers)
      return before
    }
    const peer = { connection: socket, ...this.look(address, headers, isEncrypted(socket)) }
    if (!this.byRequest) this.#known.set(socket, peer)
    return peer
  }
}

const NOTICES: Readonly<Record<ForwardingSetting, string>> = {
  trust_forwarded_headers:
    'A request came through a proxy, but [gateway] trust_forwarded_headers is off: all clients behind the proxy share one rate limit. Set it to true, and trusted_proxies to the address of the proxy.',
  trusted_proxies:
    'A forwarding header from a peer outside of [gateway] trusted_proxies is ignored. If the peer is your proxy, add its address to trusted_proxies.',
}

/** Logs each reason for an ignored header once in the life of a daemon. */
export class ForwardingWatch {
  /** The settings because of which headers were ignored so far, for health and doctor. */
  readonly ignored: Set<ForwardingSetting>
  readonly #log: Logger

  /** Adds to `ignored`. */
  constructor(log: Logger, ignored = new Set<ForwardingSetting>()) {
    this.#log = log
    this.ignored = ignored
  }

  ignore(reason: ForwardingSetting, peer: string): void {
    if (this.ignored.has(reason)) return
    this.ignored.add(reason)
    this.#log.warn(NOTICES[reason], { peer })
  }
}
