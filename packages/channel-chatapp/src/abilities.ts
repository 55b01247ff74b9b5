/** The messages that people and the bot can send on the platform. */
import type { Abilities } from '@sluice/sdk'

export const ABILITIES: Abilities = {
  platform: 'WhatsApp Business Cloud',
  arrives: ['files', 'forwards', 'edits', 'deletions', 'location', 'contact', 'form', 'link', 'unknown'],
  names: 'payload',
  sends: ['files', 'typing'],
  keeps: 'events for up to seven days, which it sends again',
}
