/** A reply is spoken. */
import type { Markup } from '@sluice/sdk'

export const MARKUP: Markup = { shows: [], spoken: true }
