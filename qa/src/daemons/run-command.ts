/** Runs commands of the command line in this process and collects their output. */
import { Readable } from 'node:stream'
import type { Stdin } from '@sluice/cli/context'
import { runCommand } from '@sluice/cli/main'
import type { Feature } from '@sluice/sdk'

export interface Ran {
  readonly code: number
  readonly out: string
  readonly err: string
}

export type Sluice = (...argv: string[]) => Promise<Ran>

export const piped = (text: string): Readable => Readable.from(text === '' ? [] : [Buffer.from(text)])

export const sluiceWith =
  (features: readonly Feature[], stdin: Stdin = piped(''), env: Readonly<Record<string, string>> = {}): Sluice =>
  async (...argv) => {
    const texts = { out: '', err: '' }
    const streams = {
      stdin,
      stdout: {
        write: (data: string | Uint8Array) => (texts.out += typeof data === 'string' ? data : Buffer.from(data).toString('latin1')),
      },
      stderr: { write: (text: string) => (texts.err += text) },
    }
    const code = await runCommand({ profile: 'test', features, argv, env, streams })
    return { code, ...texts }
  }
