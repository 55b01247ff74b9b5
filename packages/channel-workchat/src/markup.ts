/** The formatting that cards show, by the marks of their Markdown, in which a reference replaces a character that is not a mark. */
import { writeLark } from '@sluice/kit/written-marks'
import type { Markup } from '@sluice/sdk'

export const MARKUP: Markup = { shows: ['bold', 'italic', 'strike', 'code', 'pre', 'link'], write: writeLark }
