/** What Telegram shows, by the entities of a message: https://core.telegram.org/bots/api#messageentity */
import type { Markup } from '@sluice/sdk'

export const MARKUP: Markup = { shows: ['bold', 'italic', 'strike', 'code', 'pre', 'quote', 'link'] }
