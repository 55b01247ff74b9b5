/** What Slack shows, by a block of rich text: https://docs.slack.dev/reference/block-kit/blocks/rich-text-block */
import type { Markup } from '@sluice/sdk'

export const MARKUP: Markup = { shows: ['bold', 'italic', 'strike', 'code', 'pre', 'quote', 'link'] }
