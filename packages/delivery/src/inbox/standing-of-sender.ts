/** The standing of the sender of a message. */
import { type Channel, type Inbound, isAllowed, type Standing } from '@sluice/sdk'
import { isNamed } from './allowed-senders.ts'

/** `operators` are the senders of `[channels_config.<channel>] operators`. */
export function standingOfSender(
  channel: Channel,
  { sender, unverified }: Pick<Inbound, 'sender' | 'unverified'>,
  operators: readonly string[],
): Standing {
  // Without the secret of its webhook, a channel verifies no request.
  if (unverified || channel.webhook?.unsigned !== undefined) return 'unverified'
  if (!isNamed(channel, sender)) return 'stranger'
  return isAllowed(operators, sender, (entry) => channel.normalise?.(entry) ?? entry) ? 'operator' : 'listed'
}
