/** What Mattermost shows, by the marks of Markdown. */
import { writeCommonMark } from '@sluice/kit/written-marks'
import type { Markup } from '@sluice/sdk'

export const MARKUP: Markup = { shows: ['bold', 'italic', 'strike', 'code', 'pre', 'quote', 'link'], write: writeCommonMark }
