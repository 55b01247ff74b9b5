/** What a conversation at a terminal prints: the words of an answer as they arrive, and whole lines between them. */
import type { ChatFrame } from '@sluice/http/answers'
import type { Output } from './context.ts'

export class ChatLines {
  readonly #out: Output
  #isInLine = false

  constructor(out: Output) {
    this.#out = out
  }

  /** Writes a part of the answer, which goes on in the same line. */
  write(words: string): void {
    this.#out.write(words)
    if (words !== '') this.#isInLine = !words.endsWith('\n')
  }

  /** Prints a line, below the words that were written before. */
  print(line: string): void {
    if (this.#isInLine) this.#out.write('\n')
    this.#isInLine = false
    this.#out.print(line)
  }
}

/** Returns what a turn has cost. A command, such as `/compact`, names no model. */
export function costOf({ model, input_tokens, output_tokens, cost_usd }: Omit<Extract<ChatFrame, { type: 'done' }>, 'type'>): string {
  const tokens = `${input_tokens + output_tokens} tokens`
  return [model, tokens, cost_usd > 0 ? `$${cost_usd.toFixed(4)}` : ''].filter((part) => part !== '').join(', ')
}
