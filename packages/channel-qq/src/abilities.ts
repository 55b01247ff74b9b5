/** The messages that people and the bot can send on the platform. */
import type { Abilities } from '@sluice/sdk'

export const ABILITIES: Abilities = {
  platform: 'QQ',
  arrives: ['files', 'quotes', 'unknown'],
  names: 'payload',
  sends: ['files'],
  keeps: 'events of a broken session for some minutes',
}
