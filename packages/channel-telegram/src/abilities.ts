/** The messages that people and the bot can send on the platform. */
import type { Abilities } from '@sluice/sdk'

export const ABILITIES: Abilities = {
  platform: 'Telegram',
  arrives: [
    'files',
    'quotes',
    'forwards',
    'albums',
    'edits',
    'location',
    'contact',
    'sticker',
    'poll',
    'checklist',
    'game',
    'payment',
    'story',
    'event',
    'unknown',
  ],
  names: 'payload',
  sends: ['commands', 'files', 'edits', 'typing'],
  keeps: 'updates for 24 hours',
}
