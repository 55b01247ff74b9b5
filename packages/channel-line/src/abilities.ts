/** The messages that people and the bot can send on the platform. */
import type { Abilities } from '@sluice/sdk'

export const ABILITIES: Abilities = {
  platform: 'LINE',
  arrives: ['files', 'albums', 'edits', 'deletions', 'location', 'sticker', 'unknown'],
  names: 'lookup',
  sends: ['typing'],
  keeps: 'events that were not answered, if redelivery is on',
}
