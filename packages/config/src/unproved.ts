/** Channels without a secret: nothing proves who posts to them (§5 rules 3 to 5, decisions "No secret configured"). */
import { AppError, type Channel } from '@sluice/sdk'

export interface Unproved {
  readonly channel: string
  /** The key that is missing, with its section. */
  readonly key: string
}

export const unprovedChannels = (channels: readonly Channel[]): Unproved[] =>
  channels.flatMap(({ name, webhook }) =>
    webhook?.unsigned ? [{ channel: name, key: `[channels_config.${name}] ${webhook.unsigned}` }] : [],
  )

/** For an address that others can reach. Throws `config_invalid` if any channel could be posted to by anybody. */
export function demandProofs(channels: readonly Channel[], host: string): void {
  const keys = unprovedChannels(channels).map(({ key }) => key)
  if (keys.length === 0) return
  throw new AppError(
    'config_invalid',
    `${host} can be reached by others, and anybody could post as the provider: set ${keys.join(' and ')}, or bind to 127.0.0.1, or accept it with [gateway] allow_unsigned_webhooks = true`,
  )
}
