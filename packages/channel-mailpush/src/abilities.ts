/** The messages that people and the bot can send on the platform. */
import type { Abilities } from '@sluice/sdk'

export const ABILITIES: Abilities = {
  platform: 'Gmail',
  arrives: ['files', 'quotes'],
  names: 'payload',
  sends: ['files'],
  keeps: 'the mailbox',
}
