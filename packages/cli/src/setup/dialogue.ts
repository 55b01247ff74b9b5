/** Asks questions at a terminal. One reader takes all lines, so that a line typed ahead answers the next question. */
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { AppError } from '@sluice/sdk'
import type { Stdin } from '../context.ts'

export interface Dialogue {
  /**
   * Resolves to the trimmed answer, or to `proposed` for an empty one. A hidden answer is not echoed. Rejects with `aborted` at Ctrl-C
   * and at the end of the input.
   */
  ask(question: string, options?: { readonly proposed?: string | undefined; readonly isHidden?: boolean }): Promise<string>
  /** Aborts at Ctrl-C and at the end of the input. */
  readonly closed: AbortSignal
  /** Restores the terminal. */
  close(): void
}

export const aborted = (): AppError => new AppError('aborted', 'Setup was aborted. Nothing has changed.')

/** Reads the terminal until `signal` aborts. */
export function terminalDialogue(stdin: Stdin, terminal: NodeJS.WritableStream, signal: AbortSignal): Dialogue {
  let isHidden = false
  const closed = new AbortController()
  const lines: string[] = []
  let waiting: PromiseWithResolvers<string> | undefined
  const output = new Writable({
    write(chunk, _encoding, done) {
      if (!isHidden) terminal.write(chunk)
      done()
    },
  })
  const reader = createInterface({ input: stdin, output, terminal: true, historySize: 0 })
  reader.on('line', (line) => {
    if (waiting) waiting.resolve(line)
    else lines.push(line)
    waiting = undefined
  })
  reader.on('SIGINT', () => reader.close())
  reader.on('close', () => {
    closed.abort()
    waiting?.reject(aborted())
  })
  signal.addEventListener('abort', () => reader.close(), { once: true })
  const nextLine = async (): Promise<string> => {
    const known = lines.shift()
    if (known !== undefined) return known
    if (closed.signal.aborted) throw aborted()
    waiting = Promise.withResolvers<string>()
    return waiting.promise
  }
  return {
    closed: closed.signal,
    async ask(question, { proposed, isHidden: hides = false } = {}) {
      const shown = `${question}${proposed === undefined ? '' : ` [${proposed}]`}: `
      // The reader redraws the line with its prompt, but shows nothing of a hidden answer.
      reader.setPrompt(hides ? '' : shown)
      if (hides) terminal.write(shown)
      isHidden = hides
      if (!hides && lines.length === 0) reader.prompt()
      try {
        return (await nextLine()).trim() || (proposed ?? '')
      } finally {
        isHidden = false
        if (hides || closed.signal.aborted) terminal.write('\n')
      }
    },
    close: () => reader.close(),
  }
}
