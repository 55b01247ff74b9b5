/** Where the bridge of a board is, as the configuration and the command line write it: `host`, `host:port`, `[::1]:port`. */
import { isIPv6 } from 'node:net'

const ADDRESS = /^(?:\[([\da-f:.]+)\]|([a-z0-9](?:[\w.-]*[a-z0-9])?))(?::(\d{1,5}))?$/i
/** Where it listens on such a board itself. */
const PORT = 9999

export interface BridgeAddress {
  readonly host: string
  readonly port: number
}

/** Undefined: it is none. */
export function bridgeAddress(address: string): BridgeAddress | undefined {
  const [, bracketed, plain, digits = String(PORT)] = ADDRESS.exec(address) ?? []
  const host = bracketed ?? plain
  const port = Number(digits)
  if (host === undefined || port < 1 || port > 65_535 || (bracketed !== undefined && !isIPv6(bracketed))) return undefined
  return { host, port }
}
