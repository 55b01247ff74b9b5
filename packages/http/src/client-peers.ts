/** Finds the client of each request, and reports forwarding headers that are ignored. */

import type { GatewayConfig } from '@sluice/config'
import type { ForwardingSetting } from '@sluice/runtime/health'
import type { Logger } from '@sluice/sdk'
import { clientAddress, type HeaderReader, isForwarded, isSpared, isTrustedPeer, trustedProxies } from './client-address.ts'

export interface ClientPeer {
  /** The key that limiters count by; see `clientAddress`. */
  readonly address: string
  /** True: limiters do not count its failures; see `isSpared`. */
  readonly spared: boolean
}

/** Made once per configuration. */
export interface ClientPeers {
  /** True: one connection may carry requests of several clients. */
  readonly byRequest: boolean
  look(socketAddress: string, headers: HeaderReader): ClientPeer
  /** Reports a forwarding header that is ignored, such as on a later request of a connection. */
  notice(socketAddress: string, headers: HeaderReader): void
}

/** Logs each reason for an ignored header once in the life of a daemon. */
export interface ForwardingWatch {
  /** The settings because of which headers were ignored so far, for health and doctor. */
  readonly ignored: ReadonlySet<ForwardingSetting>
  ignore(why: ForwardingSetting, peer: string): void
}

const NOTICES: Readonly<Record<ForwardingSetting, string>> = {
  trust_forwarded_headers:
    'A request came through a proxy, but [gateway] trust_forwarded_headers is off: all clients behind the proxy share one rate limit. Set it to true, and trusted_proxies to the address of the proxy.',
  trusted_proxies:
    'A forwarding header from a peer outside of [gateway] trusted_proxies is ignored. If the peer is your proxy, add its address to trusted_proxies.',
}

/** Adds to `ignored`. */
export function createForwardingWatch(log: Logger, ignored = new Set<ForwardingSetting>()): ForwardingWatch {
  return {
    ignored,
    ignore(why, peer) {
      if (ignored.has(why)) return
      ignored.add(why)
      log.warn(NOTICES[why], { peer })
    },
  }
}

export function createClientPeers(
  config: Pick<GatewayConfig, 'trust_forwarded_headers' | 'trusted_proxies'>,
  forwarding: ForwardingWatch,
): ClientPeers {
  const proxies = trustedProxies(config)
  const why: ForwardingSetting = proxies ? 'trusted_proxies' : 'trust_forwarded_headers'
  const notice: ClientPeers['notice'] = (socketAddress, headers) => {
    if (forwarding.ignored.has(why) || !isForwarded(headers)) return
    if (!proxies || !isTrustedPeer(socketAddress, proxies)) forwarding.ignore(why, socketAddress)
  }
  return {
    byRequest: proxies !== null,
    notice,
    look(socketAddress, headers) {
      notice(socketAddress, headers)
      return { address: clientAddress(socketAddress, headers, proxies), spared: isSpared(socketAddress, headers, proxies) }
    },
  }
}
