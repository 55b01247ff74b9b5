/** Where the broker is: `mqtt://host[:port]`, or `mqtts://` for TLS. */

export interface BrokerAddress {
  readonly protocol: 'mqtt' | 'mqtts'
  /** Without the brackets of an IPv6 address. */
  readonly host: string
  readonly port: number
}

const PORTS = { mqtt: 1883, mqtts: 8883 } as const

export const isBrokerUrl = (url: string): boolean =>
  /^mqtts?:\/\/[^/?#\s]+\/?$/i.test(url) && URL.canParse(url) && URL.parse(url)?.port !== '0'

/** True if there is anything before an `@`, whether or not the rest is a URL. */
export const hasCredentials = (url: string): boolean => url.includes('@')

/** The URL is one that `isBrokerUrl` accepts. */
export function brokerAddress(url: string): BrokerAddress {
  const { protocol: scheme, hostname, port } = new URL(url)
  const protocol = scheme === 'mqtts:' ? 'mqtts' : 'mqtt'
  return { protocol, host: hostname.replace(/^\[(.*)\]$/, '$1'), port: port === '' ? PORTS[protocol] : Number(port) }
}
