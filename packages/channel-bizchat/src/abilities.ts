/** The messages that people and the bot can send on the platform. */
import type { Abilities } from '@sluice/sdk'

export const ABILITIES: Abilities = {
  platform: 'WhatsApp, through WATI',
  arrives: ['files', 'forwards', 'location', 'contact', 'unknown'],
  names: 'payload',
  sends: ['files'],
  keeps: 'WATI sends an event again that was not answered; nothing else',
}
