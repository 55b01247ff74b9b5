/** The one combination that gives the agent to everybody (§2.1 `require_pairing`). */
import { isLoopback } from '@sluice/kit'

export const OPEN_TO_ALL =
  'anybody who reaches this address can use the agent: [gateway] require_pairing is off and the address is not loopback'

export const PLAIN_HTTP = 'the address is not loopback and the daemon speaks plain HTTP: tokens and messages can be read on the way'

/** True for an address only this machine can reach. */
export const isLoopbackHost = (host: string): boolean => host === 'localhost' || isLoopback(host)

export const isOpenToAll = (host: string, requirePairing: boolean): boolean => !requirePairing && !isLoopbackHost(host)
