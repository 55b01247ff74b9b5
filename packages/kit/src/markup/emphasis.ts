/** Lets asterisks and tildes be marks where CommonMark sees none: next to punctuation, as in scripts that write no spaces between words. */
import { Tokenizer, type Tokens } from 'marked'
import { codeOfTag } from './html-tags.ts'

/** Scripts that write no spaces between words, or that write particles directly behind a word. */
const WITHOUT_SPACES = /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Hang}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmr}\p{sc=Mymr}ー]/u
const COMBINING = /\p{M}/u
const ENDS_WITH_PUNCTUATION = /[\p{P}\p{S}]$/u
const OPENS_BRACKET = /[\p{Ps}\p{Pi}]$/u
const BEGINS_WITH_PUNCTUATION = /^[\p{P}\p{S}]/u
const LETTER = /^\p{L}/u
/** Two characters of one unit each, of which no mark follows the first. */
const BMP_LETTER_THEN_WORDS = /^[^\ud800-\udfff][^*~]/
const DIGIT = /^\d$/
/** The characters that are looked at before a mark: a letter with its combining marks. */
const BEFORE_CHARS = 4

/** Marks that may be next to punctuation. One asterisk is also a product, so it needs a letter of a script that writes no spaces. */
const RUN = /\*+|~~+/g

/**
 * Takes the text of a paragraph, in which code and links are masked already. Returns a text of the same length, in which a space stands for the
 * letter behind a mark that ends marked text with punctuation, or a letter for the punctuation, a space for the letter before a mark that begins
 * marked text, and a letter for an asterisk between digits.
 */
export function maskEmphasis(masked: string): string {
  const characters = masked.split('')
  const open = new Set<string>()
  for (const { 0: run, index } of masked.matchAll(RUN)) {
    const before = masked.slice(Math.max(0, index - BEFORE_CHARS), index)
    const after = masked.slice(index + run.length, index + run.length + 2)
    if (run === '*' && DIGIT.test(before.at(-1) ?? '') && DIGIT.test(after[0] ?? '')) characters[index] = 'a'
    if (run.length > 3 || run === '~~~') continue
    const mark = run === '***' ? '**' : run
    if (open.has(mark) && /\S$/.test(before)) {
      open.delete(mark)
      const isInWord = (mark === '*' ? WITHOUT_SPACES : LETTER).test(Array.from(after)[0] ?? '')
      if (!isInWord || !ENDS_WITH_PUNCTUATION.test(before) || OPENS_BRACKET.test(before)) continue
      // A mark between two letters could begin marked text too, and marks around it would not fit then.
      if (BMP_LETTER_THEN_WORDS.test(after)) characters[index + run.length] = ' '
      else characters[index - 1] = 'a'
    } else if (!open.has(mark) && /^\S/.test(after)) {
      const isBesidePunctuation = BEGINS_WITH_PUNCTUATION.test(after)
      if (!isBesidePunctuation || !/[\p{L}\p{N}\p{M}]$/u.test(before)) {
        open.add(mark)
        continue
      }
      const letter = Array.from(before).findLast((character) => !COMBINING.test(character))
      if (!WITHOUT_SPACES.test(letter ?? '')) continue
      characters[index - 1] = ' '
      open.add(mark)
    }
  }
  return characters.join('')
}

/** Reads emphasis as `maskEmphasis` masked it, and code that HTML marks. Other HTML is text, so Markdown within it is read. */
export class ReplyTokenizer extends Tokenizer {
  override html(): undefined {}

  override tag(source: string): Tokens.Tag | undefined {
    return codeOfTag(source) ?? super.tag(source)
  }

  override emStrong(source: string, masked: string, before?: string): Tokens.Em | Tokens.Strong | undefined {
    const at = masked.length - source.length
    if (source.startsWith('*') && masked[at] !== '*') return undefined
    return super.emStrong(source, masked, masked[at - 1] === ' ' ? ' ' : before)
  }

  override del(source: string, masked: string, before?: string): Tokens.Del | undefined {
    return super.del(source, masked, masked[masked.length - source.length - 1] === ' ' ? ' ' : before)
  }
}
