/** Direct messages on Nostr have no styles. */
import type { Markup } from '@sluice/sdk'

export const MARKUP: Markup = { shows: [] }
