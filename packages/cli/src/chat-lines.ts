/** What a conversation at a terminal prints: an answer while it arrives, and whole lines between its parts. */
import type { ChatFrame } from '@sluice/http/answers'
import type { Output } from './context.ts'
import { BlockReader, terminalText } from './terminal-markdown.ts'

/** The end of a block that is not complete. It stays in one line of a narrow terminal, also in a script whose characters are wide. */
const TAIL_CHARS_MAX = 38

export class ChatLines {
  readonly #out: Output
  readonly #isTerminal: boolean
  readonly #blocks = new BlockReader()
  #isInLine = false
  #isBelowBlock = false

  /** The Markdown of an answer is shown as text at a terminal, and written as it is anywhere else. */
  constructor(out: Output, isTerminal: boolean) {
    this.#out = out
    this.#isTerminal = isTerminal
  }

  /** Writes a part of the answer, which goes on behind the part before. */
  write(words: string): void {
    if (!this.#isTerminal) {
      this.#out.write(words)
      if (words !== '') this.#isInLine = !words.endsWith('\n')
      return
    }
    this.#show(this.#blocks.push(words))
    // Shows that the answer goes on, until its next block is complete.
    this.#out.progress(this.#out.style('dim', this.#blocks.lastLine.trimEnd().slice(-TAIL_CHARS_MAX).toWellFormed()))
  }

  /** Prints a line, below the words that were written before. */
  print(line: string): void {
    this.end()
    if (this.#isInLine) this.#out.write('\n')
    this.#isInLine = false
    this.#isBelowBlock = false
    this.#out.print(line)
  }

  /** Shows what has arrived of a block that is not complete. */
  end(): void {
    this.#show(this.#blocks.end())
  }

  #show(blocks: string): void {
    if (blocks.trim() === '') return
    this.#out.progress('')
    this.#out.print(`${this.#isBelowBlock ? '\n' : ''}${terminalText(blocks, this.#out.style)}`)
    this.#isBelowBlock = true
  }
}

/** Returns what a turn has cost. A command, such as `/compact`, names no model. */
export function costOf({ model, input_tokens, output_tokens, cost_usd }: Omit<Extract<ChatFrame, { type: 'done' }>, 'type'>): string {
  const tokens = `${input_tokens + output_tokens} tokens`
  return [model, tokens, cost_usd > 0 ? `$${cost_usd.toFixed(4)}` : ''].filter((part) => part !== '').join(', ')
}
