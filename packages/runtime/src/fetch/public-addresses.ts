/** `Host.publicAddresses`: where a connection to a host a model or a stranger named may go. */
import { isIP } from 'node:net'
import { isPublicAddress } from '@sluice/kit'
import { AppError, type Host, type Logger, type ResolvedAddress } from '@sluice/sdk'
import { requestError } from './pinned-request.ts'

export interface PublicAddressesOptions {
  /** `[http] allow_private`: hosts exempt from the address check, as they stand in a URL, without port. */
  readonly allowPrivate: readonly string[]
  readonly log: Logger
  /** Every address of a name. Default: as the system resolves it. */
  readonly lookup?: (hostname: string) => Promise<readonly ResolvedAddress[]>
}

export function createPublicAddresses({ allowPrivate, log, lookup = resolveName }: PublicAddressesOptions): Host['publicAddresses'] {
  const exempt = new Set(allowPrivate.map((host) => withoutBrackets(host.toLowerCase())))

  const resolve = async (hostname: string, signal: AbortSignal): Promise<readonly ResolvedAddress[]> => {
    // the resolver cannot be aborted, so it is left to itself
    const aborted = Promise.withResolvers<never>()
    const onAbort = () => aborted.reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
    try {
      return await Promise.race([lookup(hostname), aborted.promise])
    } catch (cause) {
      throw requestError(hostname, cause, signal)
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
  }

  return async (host, signal) => {
    const hostname = withoutBrackets(host)
    const family = isIP(hostname)
    const addresses = family ? [{ address: hostname, family }] : await resolve(hostname, signal)
    if (addresses.length === 0) throw new AppError('upstream', `'${hostname}' has no address`)
    if (exempt.has(hostname) || addresses.every(({ address }) => isPublicAddress(address))) return addresses
    log.warn('a request to an address that is not public was refused', { host: hostname })
    throw new AppError('forbidden', `'${hostname}' is not a public address`)
  }
}

const resolveName = async (hostname: string): Promise<readonly ResolvedAddress[]> => {
  const { lookup } = await import('node:dns/promises')
  return lookup(hostname, { all: true })
}

const withoutBrackets = (host: string): string => host.replace(/^\[|\]$/g, '')
