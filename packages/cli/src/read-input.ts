/** What somebody types or pipes into a command. */
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { AppError } from '@sluice/sdk'
import type { Stdin } from './context.ts'

/** All of standard input. Throws `too_large` beyond so many bytes. */
export async function readInput(stdin: Stdin, bytesMax: number): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of stdin) {
    const data = Buffer.from(chunk)
    bytes += data.length
    if (bytes > bytesMax) throw new AppError('too_large', `standard input is over ${bytesMax} bytes`)
    chunks.push(data)
  }
  return Buffer.concat(chunks).toString('utf8')
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
