/** Replies on IRC have no styles, because each client shows its own. */
import type { Markup } from '@sluice/sdk'

export const MARKUP: Markup = { shows: [] }
