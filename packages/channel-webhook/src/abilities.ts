/** The messages that people and the bot can send on the platform. */
import type { Abilities } from '@sluice/sdk'

export const ABILITIES: Abilities = {
  platform: 'any service that posts JSON',
  arrives: ['files', 'edits', 'deletions', 'unknown'],
  names: 'payload',
  sends: ['files'],
  keeps: 'messages that the sender repeats',
}
