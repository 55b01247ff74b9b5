/** What mail shows, by HTML beside the text. */
import type { Markup } from '@sluice/sdk'

export const MARKUP: Markup = { shows: ['bold', 'italic', 'strike', 'code', 'pre', 'quote', 'link'] }
