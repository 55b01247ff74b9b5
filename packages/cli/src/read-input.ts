/** What somebody types or pipes into a command. */
import { createInterface, type Interface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { ByteBuffer } from '@sluice/kit'
import { AppError } from '@sluice/sdk'
import type { Stdin } from './context.ts'

/** All of standard input. Throws `too_large` beyond so many bytes. */
export async function readInput(stdin: Stdin, bytesMax: number): Promise<string> {
  const read = new ByteBuffer()
  for await (const piece of stdin) {
    read.append(Buffer.from(piece))
    if (read.length > bytesMax) throw new AppError('too_large', `standard input is over ${bytesMax} bytes`)
  }
  return read.bytes().toString('utf8')
}

/** One line typed at a terminal, without echo; undefined if the input ends instead. */
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

export interface Asking {
  /** Undefined once the input has ended, or the signal aborted. */
  ask(question: string): Promise<string | undefined>
  /** Lets go of the input. */
  end(): void
}

/** Asks one question after the other; takes the input only at the first. */
export function asking(stdin: Stdin, say: (question: string) => void, signal: AbortSignal): Asking {
  let reader: Interface | undefined
  let lines: AsyncIterator<string> | undefined
  return {
    async ask(question) {
      if (signal.aborted) return undefined
      // One reader for all: what was typed ahead belongs to the next question.
      reader ??= createInterface({ input: stdin, signal })
      lines ??= reader[Symbol.asyncIterator]()
      say(question)
      const { value, done } = await lines.next()
      return done ? undefined : value
    },
    end: () => reader?.close(),
  }
}
