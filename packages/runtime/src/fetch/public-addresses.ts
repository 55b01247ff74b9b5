/** `Host.publicAddresses`: the addresses to which a connection to a host that a model or a sender names may be made. */
import { isIP } from 'node:net'
import { isPublicAddress } from '@sluice/kit'
import { AppError, type Host, type Logger, type ResolvedAddress } from '@sluice/sdk'
import { requestError } from './pinned-request.ts'

export interface PublicAddressesOptions {
  /** `[http] allow_private`: hosts exempt from the address check, as in a URL, without port. */
  readonly allowPrivate: readonly string[]
  readonly log: Logger
  /** Returns every address of a name; default: the resolver of the system. */
  readonly lookup?: (hostname: string) => Promise<readonly ResolvedAddress[]>
}

export function createPublicAddresses({ allowPrivate, log, lookup = resolveName }: PublicAddressesOptions): Host['publicAddresses'] {
  const exempt = new Set(allowPrivate.map((host) => withoutBrackets(host.toLowerCase())))

  const resolve = async (hostname: string, signal: AbortSignal): Promise<readonly ResolvedAddress[]> => {
    // The resolver cannot be aborted: after an abort, its result is ignored.
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

  return async (host, signal, { onlyPublic = false } = {}) => {
    const hostname = withoutBrackets(host)
    const family = isIP(hostname)
    const addresses = family ? [{ address: hostname, family }] : await resolve(hostname, signal)
    if (addresses.length === 0) throw new AppError('upstream', `'${hostname}' has no address`)
    if ((!onlyPublic && exempt.has(hostname)) || addresses.every(({ address }) => isPublicAddress(address))) return addresses
    log.warn('a request to an address that is not public was refused', { host: hostname })
    throw new AppError('forbidden', `'${hostname}' is not a public address`)
  }
}

const resolveName = async (hostname: string): Promise<readonly ResolvedAddress[]> => {
  const { lookup } = await import('node:dns/promises')
  return lookup(hostname, { all: true })
}

const withoutBrackets = (host: string): string => host.replace(/^\[|\]$/g, '')
