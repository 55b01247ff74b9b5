/** The messages that people and the bot can send on the platform. */
import type { Abilities } from '@sluice/sdk'

export const ABILITIES: Abilities = {
  platform: 'Matrix',
  arrives: ['files', 'quotes', 'edits', 'deletions', 'location', 'poll', 'sticker', 'call', 'unknown'],
  names: 'payload',
  sends: ['files', 'edits', 'typing'],
  keeps: 'the history, up to 5,000 events of a room, edits and deletions among them',
}
