/** The messages that people and the bot can send on the platform. */
import type { Abilities } from '@sluice/sdk'

export const ABILITIES: Abilities = {
  platform: 'telephone calls',
  arrives: [],
  names: 'none',
  sends: [],
  keeps: 'nothing',
}
