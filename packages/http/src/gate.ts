/** The gate every request passes: its names, its address, its credential (§5, decisions "Browsers and names"). */
import type { HttpBindings } from '@hono/node-server'
import type { GatewayConfig } from '@sluice/config'
import type { Clients } from '@sluice/delivery'
import { isLoopback } from '@sluice/kit'
import type { HeaderReader } from '@sluice/runtime'
import { type ClientPeer, createClientPeers, type ForwardingWatch, isForwarded } from '@sluice/runtime'
import { AppError, type ClientId, type Role, type RouteAuth } from '@sluice/sdk'
import type { Context } from 'hono'
import type { Auth, Principal } from './auth.ts'
import { headersOf } from './headers-of.ts'
import { checkNames, checkOrigin } from './origin.ts'

/** Bindings are absent where no socket is, as in `app.request()`. */
export type HttpEnv = { Bindings: Partial<HttpBindings> }
export type HttpContext = Context<HttpEnv>

/** Whoever is at the other end, before any credential is looked at. */
export interface Peer extends ClientPeer {
  /** What lives as long as the connection. */
  readonly connection: object
}

export interface Caller extends Omit<Principal, 'role'> {
  readonly client: ClientId
  /** Null where no bearer was asked for. */
  readonly role: Role | null
}

export interface Gate {
  /** Where a request comes from, whatever it may do. */
  look(c: HttpContext): Peer
  /** Throws `forbidden` for a browser's request from elsewhere. */
  peer(c: HttpContext): Peer
  /**
   * Who calls a route of this kind. Throws `forbidden` (also for a role that does not suffice), `unauthorized` or `rate_limited`. `credential` stands in for the
   * request's headers where a token comes another way, as with the WebSockets of browsers.
   */
  admit(c: HttpContext, auth: RouteAuth, credential?: HeaderReader): Caller | Promise<Caller>
  /** See `Auth.isGood`. */
  isGood: Auth['isGood']
  /** Throws `unauthorized` if the token of an admitted caller was revoked since, as while its body was read. */
  recheck(caller: Pick<Caller, 'role' | 'tokenHash'>): Promise<void>
  /** As `admit` for `client`, for a peer that has been looked at. */
  identify(c: HttpContext, peer: Peer, credential?: HeaderReader): Caller | Promise<Caller>
}

export interface GateOptions {
  readonly config: GatewayConfig
  readonly auth: Auth
  readonly clients: Clients
  readonly forwarding: ForwardingWatch
}

/** Where the request came from, whatever its headers say; empty where there is no socket. */
export const socketPeer = (c: HttpContext): string => c.env?.incoming?.socket.remoteAddress ?? ''

/** True for what a web page elsewhere must not do: a change of state, or a WebSocket. */
const changesState = (method: string, headers: HeaderReader): boolean =>
  (method !== 'GET' && method !== 'HEAD') || headers.get('upgrade') !== null

/** Made anew with each configuration. */
export function createGate({ config, auth, clients, forwarding }: GateOptions): Gate {
  const peers = createClientPeers(config, forwarding)
  /** By socket: an address is parsed once per connection unless headers decide. */
  const addresses = new WeakMap<object, Peer>()

  const look = (connection: object, ip: string, headers: HeaderReader): Peer => ({ connection, ...peers.look(ip, headers) })

  const peerOf = (c: HttpContext, headers: HeaderReader): Peer => {
    const socket = c.env?.incoming?.socket
    if (!socket || peers.byRequest) return look(socket ?? c.req.raw, socketPeer(c), headers)
    const known = addresses.get(socket)
    if (known) {
      peers.notice(socketPeer(c), headers)
      return known
    }
    const fresh = look(socket, socketPeer(c), headers)
    addresses.set(socket, fresh)
    return fresh
  }

  const gate: Gate = {
    look: (c) => peerOf(c, headersOf(c)),
    peer(c) {
      const headers = headersOf(c)
      if (changesState(c.req.method, headers)) checkOrigin(headers, config)
      return peerOf(c, headers)
    },
    admit(c, kind, credential) {
      const peer = gate.peer(c)
      if (kind === 'operator' || kind === 'client') {
        const caller = gate.identify(c, peer, credential)
        return caller instanceof Promise ? caller.then((known) => checkRole(known, kind)) : checkRole(caller, kind)
      }
      if (kind === 'local') {
        const headers = headersOf(c)
        if (!isLoopback(socketPeer(c)) || isForwarded(headers))
          throw new AppError('forbidden', 'Only processes on this machine may call this')
        checkNames(headers, config)
      }
      return { device: null, tokenHash: null, role: null, client: clients.of(peer.connection, null) }
    },
    isGood: auth.isGood,
    async recheck({ role, tokenHash }) {
      if (role !== null && !(await auth.isGood(tokenHash))) throw new AppError('unauthorized', 'Unauthorized: the token was revoked')
    },
    identify(c, { connection, address, spared }, credential = headersOf(c)) {
      if (!config.require_pairing) checkNames(headersOf(c), config)
      const principal = auth.bearer(credential, address, spared)
      const callerOf = ({ device, tokenHash, role }: Principal): Caller => ({
        device,
        tokenHash,
        role,
        client: clients.of(connection, device),
      })
      return principal instanceof Promise ? principal.then(callerOf) : callerOf(principal)
    },
  }
  return gate
}

/** Throws `forbidden` for a client where an operator is needed. */
function checkRole(caller: Caller, needed: Role): Caller {
  if (needed === 'operator' && caller.role !== 'operator')
    throw new AppError('forbidden', 'This needs a token of the role operator; this one is of the role client')
  return caller
}
