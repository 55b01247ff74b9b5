/** iMessage, RCS and SMS show text without styles. */
import type { Markup } from '@sluice/sdk'

export const MARKUP: Markup = { shows: [] }
