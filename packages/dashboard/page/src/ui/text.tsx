/** Texts that others wrote, as text alone: never as markup, in their own direction, with invisible controls spelled out, and not endless. */
import { useState } from 'preact/hooks'
import { kept } from './kept.ts'

/** Controls, and characters that reorder or hide text; line breaks and tabs stay. */
const INVISIBLE = /(?![\n\t])[\p{Cc}\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\u3164\ufeff\uffa0]/gu
const SHOWN_CHARS_MAX = 8000
const LINE_CHARS_MAX = 240
/** A family of emoji and some scripts need joiners, which show nothing else than what they join. */
const JOINERS = new Set(['\u200d', '\u200c'])

const nameOf = (character: string): string => `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`

/** Returns the pieces of a text: plain ones, and the names of characters that cannot be seen. */
export function pieces(text: string) {
  const found = []
  let end = 0
  for (const { 0: character, index } of text.matchAll(INVISIBLE)) {
    if (JOINERS.has(character)) continue
    found.push(text.slice(end, index), <span class="escape">{nameOf(character)}</span>)
    end = index + character.length
  }
  return end === 0 ? text : [...found, text.slice(end)]
}

/** Cuts a text to a number of UTF-16 units, never within a character. */
export function cut(text: string, charsMax: number): string {
  const last = text.charCodeAt(charsMax - 1)
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? charsMax - 1 : charsMax)
}

/** A text with its line breaks. A very long one is cut until a person asks for more. */
export function Text({ value, class: name = '' }: { readonly value: string; readonly class?: string }) {
  const [shownMax, setShownMax] = useState(SHOWN_CHARS_MAX)
  const text = value.replaceAll('\r\n', '\n')
  const isCut = text.length > shownMax
  return (
    <>
      <div class={`text ${name}`} dir="auto">
        {pieces(isCut ? cut(text, shownMax) : text)}
        {isCut && '…'}
      </div>
      {isCut && (
        <button type="button" class="small" onClick={() => setShownMax(shownMax * 4)}>
          Show more ({integer(text.length - shownMax)} characters are left)
        </button>
      )}
    </>
  )
}

/** A text as one line, cut at the width of its place. */
export function Line({ value, class: name = '' }: { readonly value: string; readonly class?: string }) {
  const line = cut(
    value
      .slice(0, LINE_CHARS_MAX * 4)
      .replace(/\s+/g, ' ')
      .trim(),
    LINE_CHARS_MAX,
  )
  return (
    <bdi class={`line ${name}`} dir="auto">
      {pieces(line)}
      {value.length > line.length * 4 && '…'}
    </bdi>
  )
}

/** A name within a sentence, which keeps its direction to itself. */
export const Name = ({ value }: { readonly value: string }) => <bdi dir="auto">{pieces(cut(value, LINE_CHARS_MAX))}</bdi>

/** A name that a machine gave. */
export const MonoName = ({ value }: { readonly value: string }) => (
  <span class="mono">
    <Name value={value} />
  </span>
)

const integers = kept(() => new Intl.NumberFormat())
export const integer = (value: number): string => integers().format(value)
