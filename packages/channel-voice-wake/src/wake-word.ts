/** Finds the wake word in a transcript. */

/** A text for comparison: NFKD without accents, in lower case, letters and digits only, words separated by one space. */
interface Normalised {
  readonly text: string
  /** For each character of `text`, the end of its source in the original. */
  readonly ends: readonly number[]
}

/**
 * Returns the words after the first occurrence of the wake word in a transcript, as they were transcribed and perhaps none; undefined
 * when the wake word does not occur. The command begins after the word that contains the wake word. With `wholeWord`, the wake word does
 * not occur inside of other words.
 */
export function commandAfter(wakeWord: string, transcript: string, wholeWord = true): string | undefined {
  const wanted = normalise(wakeWord).text
  if (wanted === '') return undefined
  const heard = normalise(transcript)
  for (let at = heard.text.indexOf(wanted); at >= 0; at = heard.text.indexOf(wanted, at + 1)) {
    let end = at + wanted.length
    const isWhole = isEdge(heard.text, at) && isEdge(heard.text, end)
    if (wholeWord && !isWhole) continue
    while (!isEdge(heard.text, end)) end += 1
    const rest = transcript.slice(heard.ends[end - 1])
    return rest.replace(/^[^\p{L}\p{N}]+/u, '').trim()
  }
  return undefined
}

/** Scripts that write no spaces between words: every character of theirs may begin or end a word. */
const WITHOUT_SPACES =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u

/** Whether a word begins or ends between the character before this place of a normalised text and the one after it. */
function isEdge(text: string, at: number): boolean {
  const [before, after] = [text[at - 1], text[at]]
  if (before === undefined || after === undefined || before === ' ' || after === ' ') return true
  return WITHOUT_SPACES.test(before) || WITHOUT_SPACES.test(after)
}

/** Returns the words of a text as they are compared. */
export const wordsIn = (text: string): string[] =>
  normalise(text)
    .text.split(' ')
    .filter((word) => word !== '')

function normalise(original: string): Normalised {
  let text = ''
  const ends: number[] = []
  let offset = 0
  for (const character of original) {
    offset += character.length
    for (const part of character.normalize('NFKD').toLowerCase()) {
      if (/\p{M}/u.test(part)) {
        if (ends.length > 0) ends[ends.length - 1] = offset
      } else if (/[\p{L}\p{N}]/u.test(part)) {
        text += part
        for (let unit = 0; unit < part.length; unit += 1) ends.push(offset)
      } else if (text !== '' && !text.endsWith(' ')) {
        text += ' '
        ends.push(offset)
      }
    }
  }
  return text.endsWith(' ') ? { text: text.slice(0, -1), ends: ends.slice(0, -1) } : { text, ends }
}
