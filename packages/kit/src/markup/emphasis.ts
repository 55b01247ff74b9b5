/** Lets asterisks be marks where CommonMark sees none: beside punctuation, as in scripts that write no spaces between words. */
import { Tokenizer, type Tokens } from 'marked'

/** Scripts that write no spaces between words, or that write particles directly behind a word. */
const WITHOUT_SPACES = /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Hang}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmr}\p{sc=Mymr}ー]/u
const COMBINING = /\p{M}/u
const ENDS_WITH_PUNCTUATION = /[\p{P}\p{S}]$/u
const OPENS_BRACKET = /[\p{Ps}\p{Pi}]$/u
const BEGINS_WITH_PUNCTUATION = /^[\p{P}\p{S}]/u
const LETTER = /^\p{L}/u
const DIGIT = /^\d$/
/** The characters that are looked at before a mark: a letter with its combining marks. */
const BEFORE_CHARS = 4

/**
 * Takes the text of a paragraph, in which code and links are masked already. Returns a text of the same length, in which a letter stands for
 * punctuation before a mark that ends strong text, a space for the letter before one that begins it, and a letter for an asterisk between digits.
 */
export function maskEmphasis(masked: string): string {
  const characters = masked.split('')
  let isOpen = false
  for (const { 0: run, index } of masked.matchAll(/\*+/g)) {
    const before = masked.slice(Math.max(0, index - BEFORE_CHARS), index)
    const after = masked.slice(index + run.length, index + run.length + 2)
    if (run.length === 1 && DIGIT.test(before.at(-1) ?? '') && DIGIT.test(after[0] ?? '')) characters[index] = 'a'
    if (run.length !== 2 && run.length !== 3) continue
    if (isOpen && /\S$/.test(before)) {
      isOpen = false
      if (LETTER.test(after) && ENDS_WITH_PUNCTUATION.test(before) && !OPENS_BRACKET.test(before)) characters[index - 1] = 'a'
    } else if (!isOpen && /^\S/.test(after)) {
      const isBesidePunctuation = BEGINS_WITH_PUNCTUATION.test(after)
      isOpen = !isBesidePunctuation || !/[\p{L}\p{N}\p{M}]$/u.test(before)
      const letter = Array.from(before).findLast((character) => !COMBINING.test(character))
      if (!isOpen && WITHOUT_SPACES.test(letter ?? '')) {
        characters[index - 1] = ' '
        isOpen = true
      }
    }
  }
  return characters.join('')
}

/** Reads emphasis as `maskEmphasis` masked it. HTML is text, so Markdown within it is read. */
export class ReplyTokenizer extends Tokenizer {
  override html(): undefined {}

  override emStrong(source: string, masked: string, before?: string): Tokens.Em | Tokens.Strong | undefined {
    const at = masked.length - source.length
    if (source.startsWith('*') && masked[at] !== '*') return undefined
    return super.emStrong(source, masked, masked[at - 1] === ' ' ? ' ' : before)
  }
}
