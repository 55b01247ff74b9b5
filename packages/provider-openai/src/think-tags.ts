/** Splits the reasoning that a model writes in `<think>` tags at the start of its text from the answer. */

export const OPENING_TAG = '<think>'
export const CLOSING_TAG = '</think>'

export interface SplitText {
  readonly reasoning: string
  readonly text: string
}

const NOTHING: SplitText = { reasoning: '', text: '' }

/** Takes a text in pieces of any size. A tag that is not at the start of the text is a part of the text. */
export class ThinkTags {
  #state: 'start' | 'reasoning' | 'gap' | 'text' = 'start'
  /** The characters that may be the beginning of a tag. */
  #held = ''

  push(piece: string): SplitText {
    if (this.#state === 'text') return { reasoning: '', text: piece }
    const input = this.#held + piece
    this.#held = ''
    if (this.#state === 'start') return this.#start(input)
    return this.#state === 'reasoning' ? this.#reason(input) : this.#skipGap(input)
  }

  /** Returns the rest when the text has ended. */
  end(): SplitText {
    const held = this.#held
    this.#held = ''
    return this.#state === 'reasoning' ? { reasoning: held, text: '' } : { reasoning: '', text: held }
  }

  #start(input: string): SplitText {
    const begun = input.trimStart()
    if (OPENING_TAG.startsWith(begun)) {
      this.#held = input
      return NOTHING
    }
    if (begun.startsWith(OPENING_TAG)) {
      this.#state = 'reasoning'
      return this.#reason(begun.slice(OPENING_TAG.length))
    }
    this.#state = 'text'
    return { reasoning: '', text: input }
  }

  #reason(input: string): SplitText {
    const end = input.indexOf(CLOSING_TAG)
    if (end >= 0) {
      this.#state = 'gap'
      const { text } = this.#skipGap(input.slice(end + CLOSING_TAG.length))
      return { reasoning: input.slice(0, end), text }
    }
    const kept = input.length - beginningOfTag(input)
    this.#held = input.slice(kept)
    return { reasoning: input.slice(0, kept), text: '' }
  }

  /** Leaves out the blank lines between reasoning and answer. */
  #skipGap(input: string): SplitText {
    const text = input.trimStart()
    if (text !== '') this.#state = 'text'
    return { reasoning: '', text }
  }
}

/** Returns the number of characters at the end of a text with which the closing tag may begin. */
function beginningOfTag(text: string): number {
  for (let length = CLOSING_TAG.length - 1; length > 0; length--) if (text.endsWith(CLOSING_TAG.slice(0, length))) return length
  return 0
}
