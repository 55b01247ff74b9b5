/** The messages that people and the bot can send on the platform. */
import type { Abilities } from '@sluice/sdk'

export const ABILITIES: Abilities = {
  platform: 'Mattermost',
  arrives: ['files', 'quotes', 'forwards', 'edits', 'deletions', 'call', 'unknown'],
  names: 'lookup',
  sends: ['files', 'edits', 'typing', 'reactions'],
  keeps: 'the history: messages of the last hour, and edits and deletions',
}
