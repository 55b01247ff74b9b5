/** The messages that people and the bot can send on the platform. */
import type { Abilities } from '@sluice/sdk'

export const ABILITIES: Abilities = {
  platform: 'IRC',
  arrives: ['deletions', 'unknown'],
  names: 'payload',
  sends: ['typing'],
  keeps: 'nothing, or the last hour on servers with a history',
}
