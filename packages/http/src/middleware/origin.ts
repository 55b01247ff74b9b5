/** The names and origins that a request may come under: protection against foreign web pages and rebound names. */

import { isLoopback } from '@sluice/kit'
import { AppError } from '@sluice/sdk'
import { headersOf, type Step } from '../request/context.ts'
import type { HeaderReader } from './client-address.ts'

/** The part of `[gateway]` that lists the other host names of this daemon. */
export interface AllowedHosts {
  readonly allowed_hosts: readonly string[]
  readonly public_url?: string | undefined
}

/** Refuses a change of state, or a WebSocket, that a web page of another origin asks for. */
export const sameOrigin =
  (config: AllowedHosts): Step =>
  (c, next) => {
    const headers = headersOf(c)
    const changesState = (c.req.method !== 'GET' && c.req.method !== 'HEAD') || headers.get('upgrade') !== null
    if (changesState) checkOrigin(headers, config)
    return next()
  }

/** Throws `forbidden` unless `Host` names this machine or one of `allowed_hosts`. Needed wherever no token is required. */
export function checkHost(headers: HeaderReader, config: AllowedHosts): void {
  const host = parseHost(headers.get('host') ?? '')
  if (!host || !(isLocalName(host.name) || isListed(host, config))) {
    throw new AppError('forbidden', 'The Host header names neither this machine nor one of [gateway] allowed_hosts')
  }
}

/**
 * Throws `forbidden` for an `Origin` that is neither the requested host, nor this machine at the same port, nor that of `public_url`,
 * nor listed in `allowed_hosts`. A request without `Origin` passes: only browsers send one. Needed for state changes and WebSockets.
 */
export function checkOrigin(headers: HeaderReader, config: AllowedHosts): void {
  const origin = headers.get('origin')
  if (origin === null || origin === publicOrigin(config)) return
  const from = URL.canParse(origin) ? parseHost(new URL(origin).host, new URL(origin).protocol) : undefined
  const requested = parseHost(headers.get('host') ?? '', from?.scheme)
  const isOwn =
    from &&
    requested &&
    from.port === requested.port &&
    (from.name === requested.name || (isLocalName(from.name) && isLocalName(requested.name)))
  if (!from || !(isOwn || isListed(from, config))) throw new AppError('forbidden', 'Requests from other origins are refused')
}

/** The origin of `[gateway] public_url`. */
export const publicOrigin = ({ public_url }: Pick<AllowedHosts, 'public_url'>): string | undefined =>
  public_url === undefined ? undefined : URL.parse(public_url)?.origin

/** Checks `Host` and `Origin`. Without a required token, the names in the request are the only protection against web pages. */
export function checkNames(headers: HeaderReader, config: AllowedHosts): void {
  checkHost(headers, config)
  checkOrigin(headers, config)
}

interface HostName {
  /** Lower case, without brackets and without the root dot. */
  readonly name: string
  /** Empty for the default port of the scheme. */
  readonly port: string
  readonly scheme: string
}

function parseHost(host: string, scheme = 'http:'): HostName | undefined {
  const match = /^(\[[0-9a-f:.]+\]|[^:/?#@\s]+)(?::(\d{1,5}))?$/i.exec(host)
  if (!match?.[1]) return undefined
  const port = match[2] ?? ''
  const isDefault = port === (scheme === 'https:' ? '443' : '80')
  const name = match[1].toLowerCase().replace(/^\[|\]$|\.$/g, '')
  return { name, port: isDefault ? '' : port, scheme }
}

const isLocalName = (name: string): boolean => name === 'localhost' || name.endsWith('.localhost') || isLoopback(name)

/** An entry without a port matches every port. */
const isListed = ({ name, port, scheme }: HostName, { allowed_hosts }: AllowedHosts): boolean =>
  allowed_hosts.some((entry) => {
    const listed = parseHost(entry, scheme)
    return listed?.name === name && (listed.port === '' || listed.port === port)
  })
