/** What DingTalk documents of its Markdown. It documents no way to escape a mark. */
import { writeUnescaped } from '@sluice/kit/written-marks'
import type { Markup } from '@sluice/sdk'

export const MARKUP: Markup = { shows: ['bold', 'italic', 'quote', 'link'], write: writeUnescaped }
