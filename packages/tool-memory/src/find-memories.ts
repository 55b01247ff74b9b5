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
const DENSE_PART_CHARS_MIN = 2

/** Scripts whose words no spaces divide, and whose words are short. */
const DENSE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u
/** One kana, or a short word of another script, is seldom more than grammar. */
const FUNCTION_WORD = /^(?:[\p{Script=Hiragana}]{1,2}|(?!\p{Script=Han})\D{1,2})$/u

/** Of fewer memories, no word says that it is common. */
const ALL_MIN = 4
/** A store that finds so many memories has not read all that have one of the words. */
const PART_MIN = 16
const PART_SHARE = 0.9
/** A word of this length is often an article or a pronoun, in scripts with letters. */
const SHORT_WORD = /^(?!\p{Script=Han}|\p{Script=Hangul})\p{L}{1,3}$/u

const WORD = /[\p{L}\p{N}]+/gu
/** Neither accents nor characters of several widths are in such a text. */
const ASCII = /^[ -~\n]*$/

/** The short test answers for most texts. */
const isDense = (text: string): boolean => !ASCII.test(text) && DENSE.test(text)

/** Without case, accents and width. */
const folded = (text: string): string =>
  ASCII.test(text)
    ? text.toLowerCase()
    : text
        .normalize('NFKD')
        .replace(/\p{M}+/gu, '')
        .toLowerCase()

const segmenter = new Intl.Segmenter('en', { granularity: 'word' })

/** Returns the words of a text without the shortest ones, each once. Dictionaries, which cost much more than spaces, divide the scripts without spaces. */
function wordsOf(text: string, max: number): string[] {
  if (!isDense(text)) return [...new Set(folded(text).match(WORD))].filter((word) => !FUNCTION_WORD.test(word)).slice(0, max)
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
  /** The words that may be parts of a longer word of a script with spaces. */
  readonly parts: readonly string[]
  readonly text: string
}

function indexed({ key, content }: MemoryEntry): Indexed {
  const own = `${key.replaceAll('_', ' ')} ${content.slice(0, TEXT_CHARS_MAX)}`
  const text = folded(own)
  const words = new Set(isDense(own) ? wordsOf(own, Number.POSITIVE_INFINITY) : text.match(WORD))
  return { words, parts: [...words].filter((word) => word.length >= PART_CHARS_MIN), text }
}

/** Tells how well a word of the question matches an entry, from 0 to 1. */
function match({ word, hasNoSpaces }: Asked, { words, parts, text }: Indexed): number {
  if (words.has(word)) return 1
  const min = hasNoSpaces ? DENSE_PART_CHARS_MIN : PART_CHARS_MIN
  if (word.length < min) return 0
  if (text.includes(word)) return 0.7
  const shorter = hasNoSpaces ? [...words].filter((own) => own.length >= min) : parts
  return shorter.some((own) => own.length < word.length && word.includes(own)) ? 0.5 : 0
}

/** A word of the question. */
interface Asked {
  readonly word: string
  /** Whether its script has no spaces between words. */
  readonly hasNoSpaces: boolean
}

/**
 * Returns the memories that `reader` may read and that share words with the text, the best first. A word that many of them have counts less.
 * Reads no more than 30 memories, and lets the event loop go on after each few thousand characters.
 */
export async function findMemories(memories: Memories, reader: string, text: string, limit: number): Promise<MemoryEntry[]> {
  return best(await compare(memories, reader, text), limit)
}

interface Compared {
  readonly words: readonly string[]
  /** How well each of the words matches each memory. */
  readonly memories: readonly { readonly entry: MemoryEntry; readonly matches: readonly number[] }[]
}

const NOTHING: Compared = { words: [], memories: [] }

async function compare(memories: Memories, reader: string, text: string): Promise<Compared> {
  const found = await memories.similar(reader, text.slice(0, TEXT_CHARS_MAX), COMPARED_MAX)
  if (found.length === 0) return NOTHING
  const words = wordsOf(text.slice(0, TEXT_CHARS_MAX), WORDS_MAX)
  const asked = words.map((word): Asked => ({ word, hasNoSpaces: isDense(word) }))
  const compared: { entry: MemoryEntry; matches: number[] }[] = []
  let chars = 0
  for (const entry of found) {
    const one = indexed(entry)
    compared.push({ entry, matches: asked.map((word) => match(word, one)) })
    chars += one.text.length
    if (chars < CHARS_AT_ONCE) continue
    await setImmediate()
    chars = 0
  }
  return { words, memories: compared }
}

/** Returns how many of the memories have each word. */
const countsOf = ({ words, memories }: Compared): number[] =>
  words.map((_, word) => memories.filter(({ matches }) => (matches[word] ?? 0) > 0).length)

function best(compared: Compared, limit: number): MemoryEntry[] {
  const weights = countsOf(compared).map((count) => Math.log(1 + compared.memories.length / Math.max(count, 1)))
  return compared.memories
    .map(({ entry, matches }) => ({ entry, score: matches.reduce((sum, value, word) => sum + value * (weights[word] ?? 0), 0) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score || b.entry.updatedAtMs - a.entry.updatedAtMs)
    .slice(0, limit)
    .map(({ entry }) => entry)
}

/**
 * Leaves out the memories that share with the text only words which half of all memories have, such as articles. A text of nothing but such
 * words is about them.
 */
async function withTellingWords(memories: Memories, compared: Compared): Promise<Compared> {
  const { words, memories: found } = compared
  const counts = countsOf(compared)
  if (Math.max(0, ...counts) * 2 < ALL_MIN) return compared
  const owners = [...new Set(found.map(({ entry }) => entry.owner))]
  const all = (await Promise.all(owners.map((owner) => memories.count(owner)))).reduce((sum, count) => sum + count, 0)
  if (all < ALL_MIN) return compared
  // Where the store has read a part of many memories, the part does not tell how many have a word.
  const isPart = found.length >= PART_MIN && found.length < all
  const isCommon = words.map((word, at) => {
    const count = counts[at] ?? 0
    return count * 2 >= all || (isPart && SHORT_WORD.test(word) && count >= found.length * PART_SHARE)
  })
  if (isCommon.every(Boolean)) return compared
  return { words, memories: found.filter(({ matches }) => matches.some((value, word) => value > 0 && !isCommon[word])) }
}

/** Resolves to the best few memories for a message, a line each and within 500 tokens; empty when none shares a word with it that tells something. */
export async function recall(memories: Memories, reader: string, text: string): Promise<readonly RecalledMemory[]> {
  const recalled: RecalledMemory[] = []
  let tokens = 0
  const compared = await withTellingWords(memories, await compare(memories, reader, text))
  for (const { owner, key, content, untrusted } of best(compared, RECALLED_MAX)) {
    const line = `${key}: ${shortened(content.replace(/\s+/g, ' ').trim())}`
    tokens += tokensOf(line)
    if (tokens > TOKENS_MAX) break
    // Another client may have stored what all share.
    recalled.push({ text: line, untrusted: untrusted || owner !== reader })
  }
  return recalled
}

const shortened = (text: string): string => {
  const max = isDense(text) ? SHOWN_CHARS_MAX / 4 : SHOWN_CHARS_MAX
  return text.length > max ? `${text.slice(0, max).toWellFormed()}…` : text
}

function tokensOf(text: string): number {
  const dense = [...text].filter((char) => isDense(char)).length
  return dense + Math.ceil((text.length - dense) / 4)
}
