/** What WeCom documents of the Markdown of bots and robots. It documents no way to escape a mark. */
import { writeUnescaped } from '@sluice/kit/written-marks'
import type { Markup } from '@sluice/sdk'

export const MARKUP: Markup = { shows: ['bold', 'code', 'quote', 'link'], write: writeUnescaped }
