/** The messages that people and the bot can send on the platform. */
import type { Abilities } from '@sluice/sdk'

export const ABILITIES: Abilities = {
  platform: 'WeCom',
  arrives: ['files', 'quotes', 'location', 'link', 'unknown'],
  names: 'lookup',
  sends: ['files'],
  keeps: 'callbacks of apps that were not answered; nothing for AI bots',
}
