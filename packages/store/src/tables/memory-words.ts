/**
 * The words by which a store finds memories, the same in every database. Words that no spaces divide are found by each two neighbouring
 * characters, and a part of a longer word by each four, which are marked: a search for a whole word does not find them.
 */

/** A longer text is indexed, and searched for, by its beginning. */
const TEXT_CHARS_MAX = 8400
const WORD_CHARS_MAX = 200
const PART_CHARS = 4
const PART_MARK = '0'
const SEARCHED_MAX = 64
const SIMILAR_MAX = 8
const SIMILAR_PARTS_MAX = 6
/** A longer word is seldom a word of a language. */
const TELLING_CHARS_MAX = 24
/** An index of PostgreSQL takes at most one megabyte of words. */
const INDEXED_MAX = 20_000

const WORD = /[\p{L}\p{N}\p{Co}]+/gu
/** Scripts without spaces between words, and Korean, whose words end in particles. */
const DENSE =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}ー\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\p{Script=Hangul}]+/gu
const ONE_IS_A_WORD = /\p{Script=Han}/u
const KANA = /\p{Script=Hiragana}/u

interface Words {
  /** Whole words, and pairs of characters of scripts without spaces. */
  readonly whole: ReadonlySet<string>
  /** Further parts that make texts similar: single characters that are words, and marked parts of words. */
  readonly parts: ReadonlySet<string>
}

/** Returns the text that the index of a memory is made of: its words and their parts, divided by spaces. */
export function indexedWords(key: string, content: string): string {
  const { whole, parts } = wordsOf(`${key} ${content}`)
  return [...whole, ...parts].slice(0, INDEXED_MAX).join(' ')
}

/** Returns the words of the index that a search for a text looks for. */
export const searchedWords = (text: string): string[] => [...wordsOf(text, false).whole].slice(0, SEARCHED_MAX)

export interface SimilarWords {
  /** At most eight whole words and pairs of characters, those first that say most. */
  readonly whole: readonly string[]
  /** At most six parts of these words. */
  readonly parts: readonly string[]
}

/**
 * Returns the words of the index that a text shares with memories that are similar to it. The cost of a search grows with them, so a long word
 * has only every fourth of its parts and the last one: they are among all parts of a word that begins or ends alike.
 */
export function similarWords(text: string): SimilarWords {
  const whole = [...wordsOf(text, false).whole].sort((a, b) => telling(b) - telling(a)).slice(0, SIMILAR_MAX)
  const parts = new Set(whole.flatMap(similarParts))
  return { whole, parts: [...parts].slice(0, SIMILAR_PARTS_MAX) }
}

/** Long words are rarer than short ones, and a pair of kana is often grammar. */
function telling(word: string): number {
  if (!isDense(word)) return word.length > TELLING_CHARS_MAX ? 0 : word.length
  return [...word].reduce((sum, char) => sum + (KANA.test(char) ? 1 : 4), 0)
}

function similarParts(word: string): string[] {
  const chars = [...word]
  if (isDense(word)) return chars.filter((char) => ONE_IS_A_WORD.test(char))
  return partsOf(chars).filter((_, at, { length }) => at % PART_CHARS === 0 || at === length - 1)
}

const isDense = (word: string): boolean => word.search(DENSE) >= 0

const partsOf = (chars: readonly string[]): string[] =>
  Array.from({ length: Math.max(0, chars.length - PART_CHARS + 1) }, (_, at) => `${PART_MARK}${chars.slice(at, at + PART_CHARS).join('')}`)

function wordsOf(text: string, withParts = true): Words {
  const whole = new Set<string>()
  const parts = new Set<string>()
  for (const word of folded(text.slice(0, TEXT_CHARS_MAX)).match(WORD) ?? []) {
    for (const run of word.match(DENSE) ?? []) {
      const chars = [...run]
      if (chars.length === 1) whole.add(run)
      for (let at = 1; at < chars.length; at++) whole.add(`${chars[at - 1]}${chars[at]}`)
      for (const char of chars) if (ONE_IS_A_WORD.test(char)) parts.add(char)
    }
    for (const run of word.split(DENSE)) {
      if (run === '') continue
      const chars = [...run.slice(0, WORD_CHARS_MAX).toWellFormed()]
      whole.add(chars.join(''))
      if (withParts) for (const part of partsOf(chars)) parts.add(part)
    }
  }
  return { whole, parts }
}

/** Without case, accents and width. */
const folded = (text: string): string =>
  text
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .normalize('NFC')
    .toLowerCase()
