/** The messages that people and the bot can send on the platform. */
import type { Abilities } from '@sluice/sdk'

export const ABILITIES: Abilities = {
  platform: 'Discord',
  arrives: ['files', 'quotes', 'forwards', 'edits', 'deletions', 'sticker', 'poll'],
  names: 'payload',
  sends: ['commands', 'files', 'edits', 'typing'],
  keeps: 'the history, of which the last hour is read',
}
