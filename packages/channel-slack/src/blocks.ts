/** The text of a message as Slack takes it: plain, or in sections where it has buttons or is too long for an edit. */
import type { Button, Outbound } from '@sluice/sdk'
import { escapeText } from './escape-text.ts'

/** Counted as it goes out; an edit with more is refused. */
const TEXT_CHARS_MAX = 4000
const SECTION_CHARS_MAX = 3000
const LABEL_CHARS_MAX = 75

export interface Content {
  /** Shown in notifications alone where there are blocks. */
  readonly text: string
  readonly blocks: readonly object[]
}

export function contentOf({ text, buttons = [] }: Pick<Outbound, 'text' | 'buttons'>): Content {
  const escaped = escapeText(text)
  if (buttons.length === 0 && escaped.length <= TEXT_CHARS_MAX) return { text: escaped, blocks: [] }
  const parts = splitEscaped(text, SECTION_CHARS_MAX)
  // Verbatim: Slack itself would else make mentions of words.
  const sections = parts.map((part) => ({ type: 'section', text: { type: 'mrkdwn', text: part, verbatim: true } }))
  const actions = buttons.length === 0 ? [] : [{ type: 'actions', elements: buttons.map(elementOf) }]
  return { text: splitEscaped(text, TEXT_CHARS_MAX)[0] ?? '', blocks: [...sections, ...actions] }
}

const elementOf = ({ label, value, tone }: Button, index: number): object => ({
  type: 'button',
  action_id: `press-${index}`,
  text: { type: 'plain_text', text: label.slice(0, LABEL_CHARS_MAX) },
  value,
  style: tone === 'good' ? 'primary' : 'danger',
})

/** Parts of at most `max` characters once escaped, cut at line breaks or spaces where there are any, never inside a character. */
export function splitEscaped(text: string, max: number): readonly string[] {
  const parts: string[] = []
  let [part, cut] = ['', 0]
  for (const character of text) {
    const escaped = escapeText(character)
    if (part.length + escaped.length > max) {
      const at = cut > max / 2 ? cut : part.length
      parts.push(part.slice(0, at))
      part = part.slice(at)
      cut = 0
    }
    part += escaped
    if (/\s/.test(character)) cut = part.length
  }
  return [...parts, part].filter((each) => each.trim() !== '')
}
