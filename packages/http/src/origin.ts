/** Which names a request may come under, against web pages and rebound names (decisions "Browsers and names"). */

import type { GatewayConfig } from '@sluice/config'
import { isLoopback } from '@sluice/kit'
import type { HeaderReader } from '@sluice/runtime'
import { AppError } from '@sluice/sdk'

type Names = Pick<GatewayConfig, 'allowed_hosts'>

/** Throws `forbidden` unless `Host` names this machine or one of `allowed_hosts`. Needed wherever no bearer is demanded. */
export function checkHost(headers: HeaderReader, config: Names): void {
  const host = parseHost(headers.get('host') ?? '')
  if (!host || !(isLocalName(host.name) || isListed(host, config))) {
    throw new AppError('forbidden', 'The Host header names neither this machine nor one of [gateway] allowed_hosts')
  }
}

/**
 * Throws `forbidden` for an `Origin` that is neither the host asked, nor this machine at the same port, nor listed in
 * `allowed_hosts`. No `Origin`, as from anything but a browser, passes. Needed for state changes and WebSockets.
 */
export function checkOrigin(headers: HeaderReader, config: Names): void {
  const origin = headers.get('origin')
  if (origin === null) return
  const from = URL.canParse(origin) ? parseHost(new URL(origin).host, new URL(origin).protocol) : undefined
  const asked = parseHost(headers.get('host') ?? '', from?.scheme)
  const isOwn =
    from && asked && from.port === asked.port && (from.name === asked.name || (isLocalName(from.name) && isLocalName(asked.name)))
  if (!from || !(isOwn || isListed(from, config))) throw new AppError('forbidden', 'Requests from other origins are refused')
}

/** Both: where no bearer is demanded, the names in the request are all that keeps a web page out. */
export function checkNames(headers: HeaderReader, config: Names): void {
  checkHost(headers, config)
  checkOrigin(headers, config)
}

interface HostName {
  /** Lower case, without brackets and without the root dot. */
  readonly name: string
  /** Empty for the scheme's own. */
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

/** An entry without a port stands for every port. */
const isListed = ({ name, port, scheme }: HostName, { allowed_hosts }: Names): boolean =>
  allowed_hosts.some((entry) => {
    const listed = parseHost(entry, scheme)
    return listed?.name === name && (listed.port === '' || listed.port === port)
  })
