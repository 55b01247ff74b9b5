/** What Discord shows, by the marks of its Markdown. */
import { writeDiscord } from '@sluice/kit/written-marks'
import type { Markup } from '@sluice/sdk'

export const MARKUP: Markup = { shows: ['bold', 'italic', 'strike', 'code', 'pre', 'quote', 'link'], write: writeDiscord }
