/** Finds the wake word in a transcript. */

/** A text for comparison: NFKD without accents, in lower case, letters and digits only, words separated by one space. */
interface Normalised {
  readonly text: string
  /** For each character of `text`, the end of its source in the original. */
  readonly ends: readonly number[]
}

/**
 * Returns the words after the first occurrence of the wake word in a transcript, as they were transcribed and perhaps none; undefined
 * when the wake word does not occur.
 */
export function commandAfter(wakeWord: string, transcript: string): string | undefined {
  const wanted = normalise(wakeWord).text
  const heard = normalise(transcript)
  const at = wanted === '' ? -1 : heard.text.indexOf(wanted)
  if (at < 0) return undefined
  const rest = transcript.slice(heard.ends[at + wanted.length - 1])
  return rest.replace(/^[^\p{L}\p{N}]+/u, '').trim()
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
