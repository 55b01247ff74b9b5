/** Reads standard input: everything that is piped in, a secret typed at a terminal, or answers to questions. */
import { createInterface, type Interface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { ByteBuffer } from '@sluice/kit'
import { AppError } from '@sluice/sdk'
import type { Stdin } from './context.ts'

/** Returns all of standard input as UTF-8 text. Throws `too_large` if it has more than `bytesMax` bytes. */
export async function readInput(stdin: Stdin, bytesMax: number): Promise<string> {
  const buffer = new ByteBuffer()
  for await (const chunk of stdin) {
    buffer.append(Buffer.from(chunk))
    if (buffer.length > bytesMax) throw new AppError('too_large', `standard input is over ${bytesMax} bytes`)
  }
  return buffer.bytes().toString('utf8')
}

/** Returns one line typed at a terminal, without echo; undefined if the input ends first. */
export async function readHidden(stdin: Stdin): Promise<string | undefined> {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  const terminal = createInterface({ input: stdin, output: nowhere, terminal: true })
  try {
    for await (const line of terminal) return line
    return undefined
  } finally {
    terminal.close()
  }
}

/** Asks questions on the terminal. */
export interface Prompter {
  /** Returns the line typed as an answer; undefined once the input has ended or the signal has aborted. */
  ask(question: string): Promise<string | undefined>
  /** Stops reading standard input. */
  close(): void
}

/** Creates a prompter, which starts to read standard input at its first question. `print` prints a question. */
export function createPrompter(stdin: Stdin, print: (question: string) => void, signal: AbortSignal): Prompter {
  let reader: Interface | undefined
  let lines: AsyncIterator<string> | undefined
  return {
    async ask(question) {
      if (signal.aborted) return undefined
      // All questions share one reader, so that a line typed ahead answers the next question.
      reader ??= createInterface({ input: stdin, signal })
      lines ??= reader[Symbol.asyncIterator]()
      print(question)
      const { value, done } = await lines.next()
      return done ? undefined : value
    },
    close: () => reader?.close(),
  }
}
