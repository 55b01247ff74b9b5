/** The messages that people and the bot can send on the platform. */
import type { Abilities } from '@sluice/sdk'

export const ABILITIES: Abilities = {
  platform: 'Slack',
  arrives: ['files', 'quotes', 'forwards', 'edits', 'deletions', 'link', 'unknown'],
  names: 'lookup',
  sends: ['files', 'edits', 'typing'],
  keeps: 'the history: messages of the last hour, and edits of the last day in up to 100 messages',
}
