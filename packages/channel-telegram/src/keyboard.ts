/** Buttons under a message. */

import type { InlineKeyboardMarkup } from '@grammyjs/types'
import type { Button } from '@sluice/sdk'

/** What fits beside each other on a telephone. */
const ROW_MAX = 3

export function keyboardOf(buttons: readonly Button[]): InlineKeyboardMarkup {
  const keys = buttons.map(({ label, value, tone }) => ({
    text: label,
    callback_data: value,
    style: tone === 'good' ? ('success' as const) : ('danger' as const),
  }))
  const rows = Array.from({ length: Math.ceil(keys.length / ROW_MAX) }, (_, row) => keys.slice(row * ROW_MAX, (row + 1) * ROW_MAX))
  return { inline_keyboard: rows }
}
