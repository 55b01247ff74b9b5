/** The formatting that Signal shows, by ranges in addition to the text. It has no links with other words than their address. */
import type { Markup } from '@sluice/sdk'

export const MARKUP: Markup = { shows: ['bold', 'italic', 'strike', 'code', 'pre'] }
