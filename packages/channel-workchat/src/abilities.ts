/** The messages that people and the bot can send on the platform. */
import type { Abilities } from '@sluice/sdk'

export const ABILITIES: Abilities = {
  platform: 'Lark and Feishu',
  arrives: [
    'files',
    'quotes',
    'forwards',
    'edits',
    'deletions',
    'location',
    'contact',
    'sticker',
    'poll',
    'checklist',
    'event',
    'payment',
    'call',
    'unknown',
  ],
  names: 'lookup',
  sends: ['files', 'edits', 'reactions'],
  keeps: 'events that were not acknowledged for some hours, edits among them, and the history: messages of the last hour',
}
