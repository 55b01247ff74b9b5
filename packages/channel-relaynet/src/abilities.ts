/** The messages that people and the bot can send on the platform. */
import type { Abilities } from '@sluice/sdk'

export const ABILITIES: Abilities = {
  platform: 'Nostr',
  arrives: ['files', 'forwards', 'deletions', 'poll', 'unknown'],
  names: 'none',
  sends: ['files'],
  keeps: 'the events of relays, of which the last three days are read',
}
