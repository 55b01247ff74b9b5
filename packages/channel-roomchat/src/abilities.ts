/** The messages that people and the bot can send on the platform. */
import type { Abilities } from '@sluice/sdk'

export const ABILITIES: Abilities = {
  platform: 'Nextcloud Talk',
  arrives: ['files', 'quotes', 'location', 'poll', 'link', 'unknown'],
  names: 'payload',
  sends: ['reactions'],
  keeps: 'nothing',
}
