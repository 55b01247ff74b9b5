/** The formatting that mail shows, by HTML in addition to the text. */
import type { Markup } from '@sluice/sdk'

export const MARKUP: Markup = { shows: ['bold', 'italic', 'strike', 'code', 'pre', 'quote', 'link'] }
