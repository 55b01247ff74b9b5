/** QQ shows Markdown only to bots that it has allowed to send it; without that, it shows text without styles. */
import { writeUnescaped } from '@sluice/kit/written-marks'
import type { Markup } from '@sluice/sdk'

export const MARKUP: Markup = { shows: [] }

/** For bots with Markdown. QQ documents no way to escape a mark. */
export const MARKDOWN: Markup = { shows: ['bold', 'italic', 'strike', 'quote', 'link'], write: writeUnescaped }
