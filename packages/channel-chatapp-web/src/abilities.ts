/** The messages that people and the bot can send on the platform. */
import type { Abilities } from '@sluice/sdk'

export const ABILITIES: Abilities = {
  platform: 'WhatsApp, as a linked device',
  arrives: [
    'files',
    'quotes',
    'forwards',
    'albums',
    'edits',
    'deletions',
    'location',
    'contact',
    'poll',
    'link',
    'event',
    'payment',
    'form',
    'sticker',
    'call',
    'unknown',
  ],
  names: 'payload',
  sends: ['files', 'edits', 'typing', 'reactions'],
  keeps: 'messages until the device has them, up to 14 days without the phone',
}
