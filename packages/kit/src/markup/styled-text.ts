/** Splits a styled text into messages of a platform's length. A style that a break cuts ends there, and goes on in the next message. */
import type { Channel, Markup, StyledText, TextStyle } from '@sluice/sdk'
import { bestBreak, resume } from '../text/split-text-break.ts'
import { measure, reach } from '../text/split-text-units.ts'

type Limits = Pick<Channel['limits'], 'text' | 'unit'>

/** A break within code or a link of at most this length is avoided. */
const KEPT_CHARS_MAX = 80

/** Orders styles as `StyledText.styles` wants them. */
export const inOrder = (styles: readonly TextStyle[]): TextStyle[] => styles.toSorted((a, b) => a.from - b.from || b.to - a.to)

/** Returns the style without white space at its ends, which marks must not touch; undefined if nothing is left. Code keeps its own. */
export function trimmed(text: string, style: TextStyle): TextStyle | undefined {
  let { from, to } = style
  if (style.kind !== 'pre' && style.kind !== 'code') {
    while (from < to && /\s/.test(text[from] ?? '')) from++
    while (to > from && /\s/.test(text[to - 1] ?? '')) to--
  }
  return from < to ? { ...style, from, to } : undefined
}

/** Returns the part between two places, without white space at its end. */
export function sliceStyled({ text, styles }: StyledText, from: number, to: number): StyledText {
  const part = text.slice(from, to).trimEnd()
  const within = styles.flatMap((style): TextStyle[] => {
    if (style.to <= from || style.from >= to) return []
    const clipped = { ...style, from: Math.max(0, style.from - from), to: Math.min(part.length, style.to - from) }
    return [trimmed(part, clipped)].filter((each) => each !== undefined)
  })
  return { text: part, styles: inOrder(within) }
}

/** Returns the length of a styled text as the platform counts it. */
const sizeOf = (styled: StyledText, { unit }: Limits, write: Markup['write']): number => measure(write ? write(styled) : styled.text, unit)

/** Returns the parts of a text, none blank. None is longer than `limits`, unless a single character with its marks is. */
export function splitStyled(styled: StyledText, limits: Limits, write?: Markup['write']): StyledText[] {
  if (styled.text.trim() === '') return []
  if (fits(styled, limits, write)) return [styled]
  const text = styled.text.trimEnd()
  const whole = { text, styles: styled.styles }
  const kept = styled.styles.filter(({ kind, from, to }) => (kind === 'code' || kind === 'link') && to - from <= KEPT_CHARS_MAX)
  const parts: StyledText[] = []
  for (let at = 0; at < text.length; ) {
    let room = limits.text
    let [end, part] = partOf(whole, at, { ...limits, text: room }, kept)
    for (let size = sizeOf(part, limits, write); size > limits.text && room > 1; size = sizeOf(part, limits, write)) {
      room = Math.max(1, Math.min(room - 1, Math.floor((room * limits.text) / size)))
      ;[end, part] = partOf(whole, at, { ...limits, text: room }, kept)
    }
    if (part.text !== '') parts.push(part)
    at = end === text.length ? end : resume(text, end)
  }
  return parts
}

/** A text that is too long without its marks is not written. */
const fits = (styled: StyledText, limits: Limits, write: Markup['write']): boolean =>
  reach(styled.text, 0, limits) === styled.text.length && sizeOf(styled, limits, write) <= limits.text

function partOf(styled: StyledText, at: number, limits: Limits, kept: readonly TextStyle[]): [end: number, part: StyledText] {
  const { text } = styled
  const reached = reach(text, at, limits)
  const near = kept.filter(({ from, to }) => to > at && from < reached)
  const avoid = (place: number): boolean => near.some(({ from, to }) => from < place && place < to)
  const end = reached === text.length ? reached : bestBreak(text, at, { end: reached, avoid })
  return [end, sliceStyled(styled, at, end)]
}

/** Returns the text alone, with the address behind the words of each link. */
export const withAddresses = ({ text, styles }: StyledText): string =>
  styles
    .filter(({ kind }) => kind === 'link')
    .toReversed()
    .reduce((words, { to, value }) => `${words.slice(0, to)} (${value})${words.slice(to)}`, text)
