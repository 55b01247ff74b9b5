/** What cards show, by the marks of their Markdown, in which a reference stands for a character that is no mark. */
import { writeLark } from '@sluice/kit/written-marks'
import type { Markup } from '@sluice/sdk'

export const MARKUP: Markup = { shows: ['bold', 'italic', 'strike', 'code', 'pre', 'link'], write: writeLark }
