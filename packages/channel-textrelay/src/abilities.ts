/** The messages that people and the bot can send on the platform. */
import type { Abilities } from '@sluice/sdk'

export const ABILITIES: Abilities = {
  platform: 'iMessage, RCS and SMS, through Linq',
  arrives: ['files', 'edits', 'link', 'unknown'],
  names: 'none',
  sends: ['files', 'typing'],
  keeps: 'events that were not answered, which it sends again',
}
