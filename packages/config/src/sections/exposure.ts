/** Finds configurations that expose the daemon: an open address, plain HTTP, and channels without a secret (docs/contract.md#signatures). */
import { isLoopback } from '@sluice/kit'
import { AppError, type Channel } from '@sluice/sdk'

export const OPEN_TO_ALL =
  'every client that reaches this address can use the agent: [gateway] require_pairing is off and the address is not loopback'

export const PLAIN_HTTP = 'the address is not loopback and the daemon speaks plain HTTP: tokens and messages can be read in transit'

/** Tells whether only this machine can reach the host. */
export const isLoopbackHost = (host: string): boolean => host === 'localhost' || isLoopback(host)

/** Tells whether every client that reaches the address may use the agent. */
export const isOpenToAll = (host: string, requirePairing: boolean): boolean => !requirePairing && !isLoopbackHost(host)

export interface UnsignedChannel {
  readonly channel: string
  /** The missing key with its section. */
  readonly key: string
}

/** Lists the channels whose webhook requests are not verified because a secret is missing. */
export const unsignedChannels = (channels: readonly Channel[]): UnsignedChannel[] =>
  channels.flatMap(({ name, webhook }) =>
    webhook?.unsigned ? [{ channel: name, key: `[channels_config.${name}] ${webhook.unsigned}` }] : [],
  )

/** Throws `config_invalid` when a channel does not verify its requests, for a `host` that other machines can reach. */
export function requireSignatures(channels: readonly Channel[], host: string): void {
  const keys = unsignedChannels(channels).map(({ key }) => key)
  if (keys.length === 0) return
  throw new AppError(
    'config_invalid',
    `Other machines can reach ${host}, and every sender could post as the platform: set ${keys.join(' and ')}, bind to 127.0.0.1, or set [gateway] allow_unsigned_webhooks = true`,
  )
}
