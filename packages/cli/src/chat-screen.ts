/** The screen of a conversation: the lines that a person types, and what the daemon writes between them. */
import { createInterface, type Interface } from 'node:readline'
import type { Stdin } from './context.ts'

export interface ScreenOptions {
  readonly stdin: Stdin
  /** Earlier messages of the person, newest first, for the arrow keys. */
  readonly history: readonly string[]
  readonly prompt: string
}

/** An act of the person. */
export type Input =
  | { readonly type: 'line'; readonly text: string }
  /** Ctrl-C. */
  | { readonly type: 'stop' }
  /** Ctrl-D, or the end of the terminal. */
  | { readonly type: 'leave' }

export class Screen {
  readonly #terminal: Interface
  readonly #prompt: string
  readonly #inputs: Input[] = []
  #waiting: ((input: Input) => void) | undefined
  #onStop: (() => void) | undefined

  constructor({ stdin, history, prompt }: ScreenOptions) {
    this.#prompt = prompt
    this.#terminal = createInterface({ input: stdin, output: process.stderr, terminal: true, history: [...history], prompt: '' })
    this.#terminal.on('line', (text) => this.#take({ type: 'line', text }))
    this.#terminal.on('SIGINT', () => {
      this.#dropLine()
      if (this.#waiting) this.#take({ type: 'stop' })
      else this.#onStop?.()
    })
    this.#terminal.on('close', () => this.#take({ type: 'leave' }))
  }

  /** Shows the prompt and resolves to the person's next act. A line that was typed ahead is taken at once. */
  next(): Promise<Input> {
    const early = this.#inputs.shift()
    return early ? Promise.resolve(early) : this.#show(this.#prompt)
  }

  /** Shows a question and resolves to the person's next act; to undefined once the signal aborts. */
  async ask(question: string, signal: AbortSignal): Promise<Input | undefined> {
    if (signal.aborted) return undefined
    // A line that was typed ahead does not answer a question that was not shown yet.
    this.#inputs.length = 0
    const gone = Promise.withResolvers<undefined>()
    const leave = (): void => {
      this.#waiting = undefined
      gone.resolve(undefined)
    }
    signal.addEventListener('abort', leave, { once: true })
    try {
      return await Promise.race([this.#show(question), gone.promise])
    } finally {
      signal.removeEventListener('abort', leave)
    }
  }

  /** Resolves once the person leaves; lines that are typed meanwhile wait for `next`. Calls `onStop` for each Ctrl-C. */
  async during<Value>(work: Promise<Value>, onStop: () => void): Promise<Value | 'left'> {
    this.#onStop = onStop
    const left = Promise.withResolvers<'left'>()
    const leave = (): void => left.resolve('left')
    this.#terminal.once('close', leave)
    try {
      return await Promise.race([work, left.promise])
    } finally {
      this.#onStop = undefined
      this.#terminal.off('close', leave)
    }
  }

  close(): void {
    this.#terminal.close()
  }

  #show(question: string): Promise<Input> {
    this.#terminal.setPrompt(question)
    this.#terminal.prompt()
    return new Promise((resolve) => {
      this.#waiting = resolve
    })
  }

  /** Drops the line that is being typed, as a shell does at Ctrl-C. */
  #dropLine(): void {
    for (const name of ['e', 'u']) this.#terminal.write(null, { ctrl: true, name })
  }

  #take(input: Input): void {
    const waiting = this.#waiting
    this.#waiting = undefined
    if (waiting) waiting(input)
    else this.#inputs.push(input)
  }
}
