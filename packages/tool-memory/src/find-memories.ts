/** Finds memories by the words of a text, in every script: also words that no spaces divide, and parts of compound words. */
import { setImmediate } from 'node:timers/promises'
import type { Memories, MemoryEntry, RecalledMemory } from '@sluice/sdk'

/** The memories that the store finds by words and parts of words, and that are then compared word by word. */
const COMPARED_MAX = 30
const TEXT_CHARS_MAX = 4000
const WORDS_MAX = 64
/** After so many characters, other work goes on. */
const CHARS_AT_ONCE = 3000
/** The budget of a recall, at four characters a token, or one where a script has no spaces. */
const TOKENS_MAX = 500
const RECALLED_MAX = 5
const SHOWN_CHARS_MAX = 600
/** A shorter part of a word says nothing about the word. */
const PART_CHARS_MIN = 4

/** Scripts whose words no spaces divide, and whose words are short. */
const DENSE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u
/** One kana, or a short word of another script, is seldom more than grammar. */
const FUNCTION_WORD = /^(?:[\p{Script=Hiragana}]{1,2}|(?!\p{Script=Han})\D{1,2})$/u

const WORD = /[\p{L}\p{N}]+/gu
/** Neither accents nor characters of several widths are in such a text. */
const ASCII = /^[ -~\n]*$/

/** Without case, accents and width. */
const folded = (text: string): string =>
  ASCII.test(text)
    ? text.toLowerCase()
    : text
        .normalize('NFKD')
        .replace(/\p{M}+/gu, '')
        .toLowerCase()

const segmenter = new Intl.Segmenter('en', { granularity: 'word' })

/** Returns the words of a text without the shortest ones, each once. Dictionaries divide the scripts without spaces. */
function wordsOf(text: string, max: number): string[] {
  const words = new Set<string>()
  // The marks of Thai belong to its words, so the text is divided before they are removed.
  for (const { segment, isWordLike } of segmenter.segment(text.normalize('NFC'))) {
    const word = folded(segment)
    if (isWordLike && word !== '' && !FUNCTION_WORD.test(word)) words.add(word)
    if (words.size === max) break
  }
  return [...words]
}

interface Indexed {
  readonly words: ReadonlySet<string>
  readonly text: string
}

function indexed({ key, content }: MemoryEntry): Indexed {
  const own = `${key.replaceAll('_', ' ')} ${content.slice(0, TEXT_CHARS_MAX)}`
  const text = folded(own)
  // Dictionaries cost much more than spaces and marks.
  return { words: new Set(DENSE.test(own) ? wordsOf(own, Number.POSITIVE_INFINITY) : text.match(WORD)), text }
}

/** Tells how well a word of the question matches an entry, from 0 to 1. */
function match(word: string, { words, text }: Indexed): number {
  if (words.has(word)) return 1
  const min = DENSE.test(word) ? 2 : PART_CHARS_MIN
  if (word.length < min) return 0
  if (text.includes(word)) return 0.7
  return [...words].some((own) => own.length >= min && own.length < word.length && word.includes(own)) ? 0.5 : 0
}

/**
 * Returns the memories that `reader` may read and that share words with the text, the best first. A word that many of them have counts less.
 * Reads no more than 30 memories, and lets the event loop go on after each few thousand characters.
 */
export async function findMemories(memories: Memories, reader: string, text: string, limit: number): Promise<MemoryEntry[]> {
  const found = await memories.similar(reader, text.slice(0, TEXT_CHARS_MAX), COMPARED_MAX)
  if (found.length === 0) return []
  const words = wordsOf(text.slice(0, TEXT_CHARS_MAX), WORDS_MAX)
  const compared: { readonly entry: MemoryEntry; readonly matches: readonly number[] }[] = []
  let chars = 0
  for (const entry of found) {
    const one = indexed(entry)
    compared.push({ entry, matches: words.map((word) => match(word, one)) })
    chars += one.text.length
    if (chars < CHARS_AT_ONCE) continue
    await setImmediate()
    chars = 0
  }
  const weights = words.map((_, word) => {
    const count = compared.filter(({ matches }) => (matches[word] ?? 0) > 0).length
    return Math.log(1 + compared.length / Math.max(count, 1))
  })
  return compared
    .map(({ entry, matches }) => ({ entry, score: matches.reduce((sum, value, word) => sum + value * (weights[word] ?? 0), 0) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score || b.entry.updatedAtMs - a.entry.updatedAtMs)
    .slice(0, limit)
    .map(({ entry }) => entry)
}

/** Resolves to the best few memories for a message, a line each and within 500 tokens; empty when none shares a word with it. */
export async function recall(memories: Memories, reader: string, text: string): Promise<readonly RecalledMemory[]> {
  const recalled: RecalledMemory[] = []
  let tokens = 0
  for (const { owner, key, content, untrusted } of await findMemories(memories, reader, text, RECALLED_MAX)) {
    const line = `${key}: ${shortened(content.replace(/\s+/g, ' ').trim())}`
    tokens += tokensOf(line)
    if (tokens > TOKENS_MAX) break
    // Another client may have stored what all share.
    recalled.push({ text: line, untrusted: untrusted || owner !== reader })
  }
  return recalled
}

const shortened = (text: string): string => {
  const max = DENSE.test(text) ? SHOWN_CHARS_MAX / 4 : SHOWN_CHARS_MAX
  return text.length > max ? `${text.slice(0, max).toWellFormed()}…` : text
}

function tokensOf(text: string): number {
  const dense = [...text].filter((char) => DENSE.test(char)).length
  return dense + Math.ceil((text.length - dense) / 4)
}
