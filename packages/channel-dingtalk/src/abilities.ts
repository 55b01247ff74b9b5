/** The messages that people and the bot can send on the platform. */
import type { Abilities } from '@sluice/sdk'

export const ABILITIES: Abilities = {
  platform: 'DingTalk',
  arrives: ['files', 'quotes', 'forwards', 'unknown'],
  names: 'payload',
  sends: ['files'],
  keeps: 'nothing',
}
