/** A resolver for one connection that returns only the checked addresses, even if the name resolves to others by now. */
import type { LookupFunction } from 'node:net'
import type { ResolvedAddress } from '@sluice/sdk'

export const pinnedLookup =
  (addresses: readonly ResolvedAddress[]): LookupFunction =>
  (_hostname, { all }, callback) => {
    const [first] = addresses
    if (all)
      callback(
        null,
        addresses.map(({ address, family }) => ({ address, family })),
      )
    else callback(null, first?.address ?? '', first?.family)
  }
